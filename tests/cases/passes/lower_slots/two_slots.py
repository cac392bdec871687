# A loop whose tiles lie in the slots of a buffer by turns becomes a pipelined loop of as many stages.
from scalebox.ir import language as pl

buf = pl.MemRef(slots=2)


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[64, 64], pl.FP32], c: pl.Out[pl.Tensor[[64, 64], pl.FP32]]) -> pl.Tensor[[64, 64], pl.FP32]:
    for i in pl.range(4):
        t: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, buf[i % 2]] = pl.load(a, [16 * i, 0], [16, 64])
        c = pl.store(t, [16 * i, 0], c)
    return c
