# The first change hits a tile that is stored afterwards, the second one a tile that nobody needs.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def changed(x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    t = pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Vec)
    s = pl.load(x, [0, 0], [8, 64], target_memory=pl.Mem.Vec)
    u = pl.assemble(t, s, [8, 0])
    v = pl.assemble(u, s, [16, 0])
    y = pl.store(v, [0, 0], y)
    y = pl.store(t, [32, 0], y)
    return y
