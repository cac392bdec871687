from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.MXFP8_E4M3], b: pl.Tensor[[128, 32], pl.MXFP8_E4M3]):
        c = pl.matmul(pl.slice(a, [64, 32], [0, 16]), pl.slice(b, [32, 32], [0, 0]))
        return c
