"""Tensors of compound dtypes: handed on, renamed, carried by a loop and a branch, and multiplied."""

from scalebox.ir import language as pl

FOUR_BITS = pl.param("FOUR_BITS", 0)
M, K, N = 64, 128, 64
LEFT = pl.MXFP4 if FOUR_BITS else pl.MXFP8_E4M3
RIGHT = pl.MXFP4 if FOUR_BITS else pl.MXFP8_E5M2


@pl.program
class Compound:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], LEFT],
        b: pl.Tensor[[K, N], RIGHT],
        other: pl.Tensor[[K, N], RIGHT],
        n: pl.Scalar[pl.INDEX],
    ):
        left = a
        for i, (x,) in pl.range(2, init_values=(left,)):
            y = pl.yield_(x)
        if n > 0:
            right = b
            c = pl.matmul(y, right)
        else:
            right = b
            c = pl.matmul(y, other)
        d = pl.matmul(left, right)
        return c, d

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], LEFT],
        b: pl.Tensor[[K, N], RIGHT],
        a_scale: pl.Tensor[[K, N], RIGHT],
        n: pl.Scalar[pl.INDEX],
    ):
        renamed = a
        first, second = self.gemm(renamed, b, a_scale, n)
        third, fourth = self.gemm(a, a_scale, b, n)
        return first, second, third, fourth
