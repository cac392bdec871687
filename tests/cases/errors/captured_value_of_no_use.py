from scalebox.ir import language as pl

Z = "16"


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32]):
        t = pl.load(x, [Z, 0], [16, 64])
