from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[16, 64], pl.INT8], o: pl.Out[pl.Tensor[[16, 64], pl.INT8]]):
        t = pl.load(x, [0, 0], [16, 64])
        o = pl.store(pl.add(t, 200), [0, 0], o)
        return o
