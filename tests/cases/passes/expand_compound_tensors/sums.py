# A sum over windows along K: the accumulator is no compound tensor and stays one value.
from scalebox.ir import language as pl


@pl.program
class Sums:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[32, 256], pl.MXFP4], b: pl.Tensor[[256, 64], pl.MXFP4]):
        c = pl.matmul(a[:, 0:64], b[0:64])
        for k in pl.range(64, 256, 64):
            c = pl.matmul_acc(c, a[:, k : k + 64], b[k : k + 64])
        return c
