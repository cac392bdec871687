from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.MXINT8], b: pl.Tensor[[64, 32], pl.MXINT8]):
        c = pl.matmul(a, b)
        return c
