from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function
    def k(self, n: pl.Scalar[pl.INDEX]:
        return n
