from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.MXFP8_E4M3, pl.TensorView(stride=[1, 64], layout=pl.DN)]):
        pass
