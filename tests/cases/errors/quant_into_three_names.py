from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[32, 64], pl.FP16]):
        a, b, c = pl.quant_mx(x, group_axis=1)
        return a
