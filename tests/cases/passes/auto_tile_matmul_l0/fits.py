# What fits L0 and is no faster in steps stays as it is: one step of K, one tile.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
    sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
    sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
    c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
):
    l = pl.load(a, [0, 0], [16, 64])
    p = pl.load(sa, [0, 0], [16, 2])
    r = pl.load(b, [0, 0], [64, 32])
    q = pl.load(sb, [0, 0], [2, 32])
    x = pl.matmul_mx(l, p, r, q)
    c = pl.store(x, [0, 0], c)
    return c
