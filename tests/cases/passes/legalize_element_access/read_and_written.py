# Elements that are read go into ops as tiles of their copies; one that is written replaces a window.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def elements(x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
    t = pl.load(x, [0, 0], [32, 64], [20, 50], target_memory=pl.Mem.Vec)
    s = pl.read(t, [3, 17])
    u = pl.write(pl.mul(t, s), [0, 1], 2.0)
    v = pl.write(u, [1, 0], s)
    y = pl.store(v, [0, 0], y)
    return y
