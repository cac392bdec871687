from scalebox.ir import language as pl

K = 96


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32]):
        pl.static_assert(K % 64 == 0, "K must be a multiple of 64")
