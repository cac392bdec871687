from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32]) -> pl.Tensor[[64, 32], pl.FP32]:
        return x
