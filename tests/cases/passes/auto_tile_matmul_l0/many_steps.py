# More products than are written one by one: loops over the tiles, those of N two at a time. K has a tail.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[768, 320], pl.FP8E4M3FN],
    sa: pl.Tensor[[768, 10], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[320, 512], pl.FP8E4M3FN],
    sb: pl.Tensor[[10, 512], pl.FP8E8M0, pl.MX_B_NN],
    c: pl.Out[pl.Tensor[[768, 512], pl.FP32]],
):
    l = pl.load(a, [0, 0], [768, 320])
    p = pl.load(sa, [0, 0], [768, 10])
    r = pl.load(b, [0, 0], [320, 512])
    q = pl.load(sb, [0, 0], [10, 512])
    x = pl.matmul_mx(l, p, r, q)
    c = pl.store(x, [0, 0], c)
    return c
