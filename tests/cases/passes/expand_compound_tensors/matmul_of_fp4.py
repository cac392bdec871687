# A matmul of two compound tensors becomes one of their planes: FP4 elements, scales in box order.
from scalebox.ir import language as pl


@pl.program
class Fp4:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[32, 64], pl.MXFP4], b: pl.Tensor[[64, 64], pl.MXFP4]):
        return pl.matmul(a, b)
