"""A branch in a loop, each arm of which adds another product to the carried accumulator."""

from scalebox.ir import language as pl

STAGE = pl.param("STAGE", 1)
LOWER = pl.param("LOWER", 128)


@pl.program
class BranchInLoop:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 256], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 8], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[256, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[8, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        acc = pl.matmul_mx(
            pl.load(a, [0, 0], [16, 64]),
            pl.load(sa, [0, 0], [16, 2]),
            pl.load(b, [0, 0], [64, 32]),
            pl.load(sb, [0, 0], [2, 32]),
        )
        for k in pl.pipeline(64, 256, 64, stage=STAGE):
            at = pl.load(a, [0, k], [16, 64])
            bt = pl.load(b, [k, 0], [64, 32])
            if k < LOWER:
                s = pl.load(sa, [0, k // 32], [16, 2])
                t = pl.load(sb, [k // 32, 0], [2, 32])
                acc = pl.matmul_mx_acc(acc, at, s, bt, t)
            else:
                s = pl.load(sa, [0, 0], [16, 2])
                t = pl.load(sb, [0, 0], [2, 32])
                acc = pl.matmul_mx_acc(acc, at, s, bt, t)
                acc = pl.matmul_mx_acc(acc, at, s, bt, t)
        c = pl.store(acc, [0, 0], c)
        return c
