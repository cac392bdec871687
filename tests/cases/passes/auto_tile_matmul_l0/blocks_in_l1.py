# L1 does not hold the operands: rows go in blocks, of which each loads its own; the tail stands alone.
from scalebox.ir import language as pl


@pl.program
class k:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[1100, 256], pl.BF16],
        b: pl.Tensor[[256, 64], pl.BF16],
        c: pl.Out[pl.Tensor[[1100, 64], pl.FP32]],
    ):
        l = pl.load(a, [0, 0], [1104, 256], [1100, 256])
        r = pl.load(b, [0, 0], [256, 64])
        x = pl.matmul(l, r)
        c = pl.store(x, [0, 0], c)
        return c
