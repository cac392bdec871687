from scalebox.ir import language as pl


@pl.program
class One:
    @pl.function
    def k(self, n: pl.Scalar[pl.INDEX]):
        return n


@pl.program
class Two:
    @pl.function
    def k(self, n: pl.Scalar[pl.INDEX]):
        return n
