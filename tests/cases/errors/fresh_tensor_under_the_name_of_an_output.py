from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def f(self, c: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        for i in pl.range(2):
            c = pl.create_tensor([64, 32], dtype=pl.FP32)
        return c
