from scalebox.ir import language as pl

rows = 16


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32]):
        n0 = 0
        t = pl.load(x, [rowz, n0], [16, 64])
        u = pl.load(x, [0, 0], [16, 64])
