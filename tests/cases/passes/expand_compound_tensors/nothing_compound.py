# A program without compound tensors stays as it is.
from scalebox.ir import language as pl


@pl.program
class Plain:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        out = pl.store(pl.load(x, [0, 0], [16, 32], target_memory=pl.Mem.Vec), [0, 0], out)
        return out
