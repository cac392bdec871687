# A load that is valid in part reads whole boxes; what is valid stays with the tile.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(s: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ]):
    t = pl.load(s, [16, 0], [32, 4], [20, 3])
