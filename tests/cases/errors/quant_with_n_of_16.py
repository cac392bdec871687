from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[16, 64], pl.FP16]):
        q, s = pl.quant_mx(x, group_axis=0)
        return q, s
