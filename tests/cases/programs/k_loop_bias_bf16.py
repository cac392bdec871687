"""A bias starts the accumulator, BF16 leaves; the loads name no memory and nothing is moved by hand."""

from scalebox.ir import language as pl

K = pl.param("K", 256)
STAGE = pl.param("STAGE", 2)


@pl.program
class KLoopBias:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[32, K], pl.FP8E5M2],
        sa: pl.Tensor[[32, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, 64], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, 64], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, 64], pl.FP32],
        c: pl.Out[pl.Tensor[[32, 64], pl.BF16]],
    ):
        acc = pl.matmul_mx_bias(
            pl.load(a, [0, 0], [32, 64]),
            pl.load(sa, [0, 0], [32, 2]),
            pl.load(b, [0, 0], [64, 64]),
            pl.load(sb, [0, 0], [2, 64]),
            pl.load(bias, [0, 0], [1, 64]),
        )
        for k in pl.pipeline(64, K, 64, stage=STAGE):
            acc = pl.matmul_mx_acc(
                acc,
                pl.load(a, [0, k], [32, 64]),
                pl.load(sa, [0, k // 32], [32, 2]),
                pl.load(b, [k, 0], [64, 64]),
                pl.load(sb, [k // 32, 0], [2, 64]),
            )
        c = pl.store(acc, [0, 0], c)
        return c
