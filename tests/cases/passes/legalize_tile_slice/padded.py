# A window that is filled up is cut first, and then filled: a tile that is valid as a whole, as before.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[64, 64], pl.FP32], c: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
) -> pl.Tensor[[32, 64], pl.FP32]:
    t = pl.load(a, [0, 0], [64, 64], valid_shape=[20, 64], target_memory=pl.Mem.Vec)
    u = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
    for i in pl.range(2):
        c = pl.store(u, [16 * i, 0], c)
        u = pl.slice(t, [16, 64], [8, 0], clamp=True, pad_value=pl.PadValue.max)
    return c
