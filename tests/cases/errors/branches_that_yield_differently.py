from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, n: pl.Scalar[pl.INDEX]):
        if n > 0:
            y = pl.yield_(1)
        else:
            z = pl.yield_(2)
