from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 63], pl.FP4]):
        return
