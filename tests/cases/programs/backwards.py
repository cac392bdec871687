"""A pipelined loop that counts down: the data move, the scales stay where they are."""

from scalebox.ir import language as pl

STAGE = pl.param("STAGE", 2)
FIRST = pl.param("FIRST", 192)
LAST = pl.param("LAST", -1)
STEP = pl.param("STEP", -64)


@pl.program
class Backwards:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 256], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[256, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        acc = pl.matmul_mx(
            pl.load(a, [0, 0], [16, 64]),
            pl.load(sa, [0, 0], [16, 2]),
            pl.load(b, [0, 0], [64, 32]),
            pl.load(sb, [0, 0], [2, 32]),
        )
        for k in pl.pipeline(FIRST, LAST, STEP, stage=STAGE):
            acc = pl.matmul_mx_acc(
                acc,
                pl.load(a, [0, k], [16, 64]),
                pl.load(sa, [0, 0], [16, 2]),
                pl.load(b, [k, 0], [64, 32]),
                pl.load(sb, [0, 0], [2, 32]),
            )
        c = pl.store(acc, [0, 0], c)
        return c
