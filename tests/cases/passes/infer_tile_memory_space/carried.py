# The tile that the loop hands on is one value: the load before the loop, the load in it, the iteration
# argument and the result are all in Mat because a matmul wants it.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[16, 256], pl.FP8E4M3FN],
    sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
    sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
):
    p = pl.load(sa, [0, 0], [16, 2])
    r = pl.load(b, [0, 0], [64, 32])
    q = pl.load(sb, [0, 0], [2, 32])
    t = pl.load(a, [0, 0], [16, 64])
    for k in pl.range(64, 256, 64):
        t = pl.load(a, [0, k], [16, 64])
    x = pl.matmul_mx(t, p, r, q)
