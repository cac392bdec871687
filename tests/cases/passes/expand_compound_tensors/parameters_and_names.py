# Parameters, names, branches, loops and calls take two tensors for one. What no matmul takes keeps its
# elements only, and a name that is taken gets a number.
from scalebox.ir import language as pl

M, K, N = 64, 128, 32


@pl.program
class Compound:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.MXFP8_E4M3],
        b: pl.Tensor[[K, N], pl.MXFP8_E5M2],
        unused: pl.Tensor[[M, N], pl.MXFP8_E4M3],
        n: pl.Scalar[pl.INDEX],
    ):
        left = a
        if n > 0:
            right = b
        else:
            right = b
        for i, (x,) in pl.range(2, init_values=(left,)):
            y = pl.yield_(x)
        c = pl.matmul(y, right)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.MXFP8_E4M3],
        b: pl.Tensor[[K, N], pl.MXFP8_E5M2],
        b_scale: pl.Tensor[[M, N], pl.MXFP8_E4M3],
    ):
        renamed = a
        c = self.gemm(renamed, b, b_scale, 1)
        return c
