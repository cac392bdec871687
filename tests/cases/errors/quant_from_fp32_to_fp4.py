from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[16, 64], pl.FP32]):
        q, s = pl.quant_mx(x, group_axis=1, dtype=pl.FP4)
        return q, s
