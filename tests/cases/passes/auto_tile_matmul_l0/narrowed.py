# A valid K of 330: five steps of 64, then one of 64 of which 10 elements are valid; what is beyond is not loaded.
# The last tile of M has 4 valid rows of 16.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[256, 512], pl.FP8E4M3FN],
    sa: pl.Tensor[[256, 16], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[512, 256], pl.FP8E4M3FN],
    sb: pl.Tensor[[16, 256], pl.FP8E8M0, pl.MX_B_NN],
    c: pl.Out[pl.Tensor[[256, 256], pl.FP32]],
):
    l = pl.load(a, [0, 0], [256, 512], [196, 330])
    p = pl.load(sa, [0, 0], [256, 16], [196, 11])
    r = pl.load(b, [0, 0], [512, 256], [330, 200])
    q = pl.load(sb, [0, 0], [16, 256], [11, 200])
    x = pl.matmul_mx(l, p, r, q)
    c = pl.store(x, [0, 0], c)
    return c
