# Tiles of M, each stored at its place, in two accumulators.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[256, 256], pl.FP8E4M3FN],
    sa: pl.Tensor[[256, 8], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[256, 256], pl.FP8E4M3FN],
    sb: pl.Tensor[[8, 256], pl.FP8E8M0, pl.MX_B_NN],
    c: pl.Out[pl.Tensor[[256, 256], pl.FP32]],
):
    l = pl.load(a, [0, 0], [256, 256])
    p = pl.load(sa, [0, 0], [256, 8])
    r = pl.load(b, [0, 0], [256, 256])
    q = pl.load(sb, [0, 0], [8, 256])
    x = pl.matmul_mx(l, p, r, q)
    c = pl.store(x, [0, 0], c)
    return c
