from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t = pl.create_tile([16, 2], pl.FP8E8M0, target_memory=pl.Mem.LeftScale)
        return o
