from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def multiply(self, x: pl.Tensor[[64, 64], pl.MXFP8_E4M3], y: pl.Tensor[[64, 64], pl.MXFP8_E4M3]):
        z = pl.matmul(x, y)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[64, 64], pl.MXFP8_E4M3]):
        c = self.multiply(a, a)
        return c
