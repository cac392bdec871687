# A window that is cut down to what is valid of its tile says how much that is.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[64, 64], pl.FP32], c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
    t = pl.load(a, [0, 0], [64, 64], valid_shape=[20, 64], target_memory=pl.Mem.Vec)
    u = pl.slice(t, [16, 64], [8, 0], clamp=True)
    return pl.store(u, [0, 0], c)
