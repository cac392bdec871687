from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.MXFP8_E4M3], b: pl.Tensor[[128, 32], pl.MXFP8_E4M3]):
        c = pl.matmul(a, b, out_dtype=pl.BF16)
        return c
