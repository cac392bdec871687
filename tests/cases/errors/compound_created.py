from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.MXFP8_E4M3]):
        t = pl.create_tensor([64, 128], dtype=pl.MXFP8_E4M3)
