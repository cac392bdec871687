"""Compound tensors in grids, regions and launches: handed on as one, expanded in every function."""

from scalebox.ir import language as pl

M, K, N = 64, 128, 64


@pl.program
class CompoundLaunches:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[M, K], pl.MXFP8_E4M3], b: pl.Tensor[[K, N], pl.MXFP8_E4M3]):
        return pl.matmul(a, b)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.MXFP8_E4M3],
        b: pl.Tensor[[K, N], pl.MXFP8_E4M3],
        out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        for i in pl.spmd(4, name_hint="rows"):
            out[i * 16 : i * 16 + 16, :] = pl.matmul(a[i * 16 : i * 16 + 16, :], b)
        with pl.at(level=pl.Level.CORE_GROUP):
            inner = pl.matmul(a, b)
        first, task = pl.submit(self.gemm, a, b)
        second, _task = pl.submit(self.gemm, a, b, deps=[task])
        return out, inner, first, second
