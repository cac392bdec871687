"""A pipelined loop that ends where a scalar argument says: its remainder is known only when it runs."""

from scalebox.ir import language as pl

K = pl.param("K", 512)
STAGE = pl.param("STAGE", 2)


@pl.program
class DynamicTrips:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        end: pl.Scalar[pl.INDEX],
    ):
        acc = pl.matmul_mx(
            pl.load(a, [0, 0], [16, 64]),
            pl.load(sa, [0, 0], [16, 2]),
            pl.load(b, [0, 0], [64, 32]),
            pl.load(sb, [0, 0], [2, 32]),
        )
        for k in pl.pipeline(64, end, 64, stage=STAGE):
            acc = pl.matmul_mx_acc(
                acc,
                pl.load(a, [0, k], [16, 64]),
                pl.load(sa, [0, k // 32], [16, 2]),
                pl.load(b, [k, 0], [64, 32]),
                pl.load(sb, [k // 32, 0], [2, 32]),
            )
        c = pl.store(acc, [0, 0], c)
        return c
