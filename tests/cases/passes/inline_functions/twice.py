# The body of an inline function comes to each of its calls, with the arguments in the place of its parameters.
from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.Inline)
    def scaled(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        m = n * 2
        return m

    @pl.function(type=pl.FunctionType.InCore)
    def k(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        x = self.scaled(n)
        y = self.scaled(x + 1)
        return y
