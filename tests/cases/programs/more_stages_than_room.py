"""Three stages of right tiles of which L0B holds two: the copies share as late as they can."""

from scalebox.ir import language as pl

K = pl.param("K", 1024)


@pl.program
class MoreStagesThanRoom:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, 128], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, 128], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 128], pl.FP32]],
    ):
        acc = pl.matmul_mx(
            pl.load(a, [0, 0], [16, 256]),
            pl.load(sa, [0, 0], [16, 8]),
            pl.load(b, [0, 0], [256, 128]),
            pl.load(sb, [0, 0], [8, 128]),
        )
        for k in pl.pipeline(256, K, 256, stage=3):
            acc = pl.matmul_mx_acc(
                acc,
                pl.load(a, [0, k], [16, 256]),
                pl.load(sa, [0, k // 32], [16, 8]),
                pl.load(b, [k, 0], [256, 128]),
                pl.load(sb, [k // 32, 0], [8, 128]),
            )
        c = pl.store(acc, [0, 0], c)
        return c
