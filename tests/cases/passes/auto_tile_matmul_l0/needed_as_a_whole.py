# A result that is stored twice stays one tile: only K is cut.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[128, 256], pl.FP8E4M3FN],
    sa: pl.Tensor[[128, 8], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[256, 128], pl.FP8E4M3FN],
    sb: pl.Tensor[[8, 128], pl.FP8E8M0, pl.MX_B_NN],
    c: pl.Out[pl.Tensor[[256, 128], pl.FP32]],
):
    l = pl.load(a, [0, 0], [128, 256])
    p = pl.load(sa, [0, 0], [128, 8])
    r = pl.load(b, [0, 0], [256, 128])
    q = pl.load(sb, [0, 0], [8, 128])
    x = pl.matmul_mx(l, p, r, q)
    c = pl.store(x, [0, 0], c)
    c = pl.store(x, [128, 0], c)
    return c
