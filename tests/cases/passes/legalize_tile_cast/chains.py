# FP4 reaches FP8 in three steps that lose nothing, and FP32 reaches INT8 through FP16, rounded to odd
# so that the last step sees what is missing; a cast that the machine has stays as it is.
from scalebox.ir import language as pl


@pl.program
class Chains:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[16, 64], pl.FP4],
        b: pl.Tensor[[16, 64], pl.FP32],
        c: pl.Out[pl.Tensor[[16, 64], pl.FP8E4M3FN]],
        d: pl.Out[pl.Tensor[[16, 64], pl.INT8]],
        e: pl.Out[pl.Tensor[[16, 64], pl.BF16]],
    ):
        t = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        c = pl.store(pl.cast(t, pl.FP8E4M3FN), [0, 0], c)
        f = pl.load(b, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        d = pl.store(pl.cast(f, pl.INT8, mode="rint"), [0, 0], d)
        e = pl.store(pl.cast(f, pl.BF16, mode="floor"), [0, 0], e)
        return c, d, e
