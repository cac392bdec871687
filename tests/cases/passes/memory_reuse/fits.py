# Everything fits: nobody shares, so that no transfer waits for another.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[16, 512], pl.FP8E4M3FN]):
    t = pl.load(a, [0, 0], [16, 64])
    u = pl.load(a, [0, 64], [16, 64])
