from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        if n:
            t = pl.load(x, [0, 0], [16, 64])
