from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore, level=pl.Level.CHIP)
    def k(self, n: pl.Scalar[pl.INDEX]):
        return n
