from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.NVFP4], b: pl.Tensor[[128, 32], pl.MXFP4]):
        c = pl.matmul(a, b)
        return c
