from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.FP16], b: pl.Tensor[[128, 32], pl.BF16]):
        c = pl.matmul(a, b)
        return c
