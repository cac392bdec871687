from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[32, 64], pl.FP16]):
        q, s = pl.quant_mx(pl.load(x, [0, 0], [32, 64]))
