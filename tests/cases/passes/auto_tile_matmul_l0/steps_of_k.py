# Steps of K: the next operands move while the cube works on these ones.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[64, 512], pl.FP8E4M3FN],
    sa: pl.Tensor[[64, 16], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[512, 128], pl.FP8E4M3FN],
    sb: pl.Tensor[[16, 128], pl.FP8E8M0, pl.MX_B_NN],
    c: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
):
    l = pl.load(a, [0, 0], [64, 512])
    p = pl.load(sa, [0, 0], [64, 16])
    r = pl.load(b, [0, 0], [512, 128])
    q = pl.load(sb, [0, 0], [16, 128])
    x = pl.matmul_mx(l, p, r, q)
    c = pl.store(x, [0, 0], c)
    return c
