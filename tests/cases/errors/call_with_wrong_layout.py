from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ]):
        t = pl.load(x, [0, 0], [16, 4])

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, y: pl.Tensor[[64, 4], pl.FP8E8M0]):
        self.k(y)
