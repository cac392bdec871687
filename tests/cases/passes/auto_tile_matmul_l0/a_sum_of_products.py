# Products that only the next one uses are cut alike, one tile of the sum after another.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[256, 128], pl.FP8E4M3FN],
    sa: pl.Tensor[[256, 4], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[128, 256], pl.FP8E4M3FN],
    sb: pl.Tensor[[4, 256], pl.FP8E8M0, pl.MX_B_NN],
    c: pl.Out[pl.Tensor[[256, 256], pl.FP32]],
):
    l = pl.load(a, [0, 0], [256, 128])
    p = pl.load(sa, [0, 0], [256, 4])
    r = pl.load(b, [0, 0], [128, 256])
    q = pl.load(sb, [0, 0], [4, 256])
    x = pl.matmul_mx(l, p, r, q)
    x = pl.matmul_mx_acc(x, l, p, r, q)
    c = pl.store(x, [0, 0], c)
    return c
