from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ]):
        s = pl.slice(a, [16, 2], [0, 0])
        return s
