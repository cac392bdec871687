# The extent of an axis bounds a loop, and what is computed from it is what is valid of each tile.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[64, 64], pl.FP32], c: pl.Out[pl.Tensor[[64, 64], pl.FP32]]) -> pl.Tensor[[64, 64], pl.FP32]:
    rows = pl.tensor.dim(x, 0)
    half = rows // 2
    for i in pl.range(0, rows, half):
        t = pl.load(x, [i, 0], [32, 64], valid_shape=[half, half + 16])
        c = pl.store(t, [i, 0], c)
    return c
