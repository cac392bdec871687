"""A grid of launches: the tile's place travels as scalar arguments, computed on the way."""

from scalebox.ir import language as pl

M = pl.param("M", 64)
N = pl.param("N", 64)
K = pl.param("K", 256)
STAGE = pl.param("STAGE", 2)


@pl.program
class Tiled:
    @pl.function(type=pl.FunctionType.InCore)
    def tile(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        row: pl.Scalar[pl.INDEX],
        col: pl.Scalar[pl.INDEX],
    ):
        acc = pl.matmul_mx(
            pl.load(a, [row, 0], [16, 64]),
            pl.load(sa, [row, 0], [16, 2]),
            pl.load(b, [0, col], [64, 32]),
            pl.load(sb, [0, col], [2, 32]),
        )
        for k in pl.pipeline(64, K, 64, stage=STAGE):
            g = k // 32
            acc = pl.matmul_mx_acc(
                acc,
                pl.load(a, [row, k], [16, 64]),
                pl.load(sa, [row, g], [16, 2]),
                pl.load(b, [k, col], [64, 32]),
                pl.load(sb, [g, col], [2, 32]),
            )
        c = pl.store(acc, [row, col], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        for i in pl.range(M // 16):
            row = i * 16
            for col in pl.range(0, N, 32):
                c = self.tile(a, sa, b, sb, c, row, col)
        return c
