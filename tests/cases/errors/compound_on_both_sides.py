from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 64], pl.MXFP8_E4M3], b: pl.Tensor[[64, 64], pl.MXFP4]):
        c = pl.matmul(a, b)
        again = a
        d = pl.matmul(b, again)
        return c, d
