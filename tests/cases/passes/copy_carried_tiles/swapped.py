# Two tiles that change places from trip to trip must be copied: each lies in the buffer of the other.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[32, 64], pl.FP32], c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
    s = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
    t = pl.load(a, [16, 0], [16, 64], target_memory=pl.Mem.Vec)
    for i in pl.range(3):
        u = s
        s = t
        t = u
    return pl.store(pl.sub(s, t), [0, 0], c)
