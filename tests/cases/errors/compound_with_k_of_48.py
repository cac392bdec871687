from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 48], pl.MXFP6_E2M3], b: pl.Tensor[[48, 32], pl.MXFP6_E2M3]):
        c = pl.matmul(a, b)
        return c
