from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.NVFP4]):
        t = pl.load(a, [0, 0], [64, 128], target_memory=pl.Mem.Mat)
