# A tile that is only stored goes to Vec, from which a store can read; so does one that nobody uses beside it.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 64], pl.FP32], c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
    t = pl.load(a, [0, 0], [16, 64])
    u = pl.load(a, [0, 0], [8, 64])
    return pl.store(t, [0, 0], c)
