# Quantised tensors feed a matmul as tiles; scales that are returned are written as a row of their bytes.
from scalebox.ir import language as pl

M, K, N = 64, 128, 32
G = K // 32


@pl.program
class Quantised:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, x: pl.Tensor[[M, K], pl.FP32], y: pl.Tensor[[N, K], pl.BF16]):
        a, a_scale = pl.quant_mx(x, group_axis=1)
        b, b_scale = pl.quant_mx(y, group_axis=0, rule="nv")
        c = pl.matmul_mx(a, a_scale, b, b_scale)
        return c, b, b_scale

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, K], pl.FP32], y: pl.Tensor[[N, K], pl.BF16]):
        c, b, b_scale = self.gemm(x, y)
        return c, b, b_scale
