# A row of biases is cut along N, 4-bit operands between boxes of 64 columns.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[128, 64], pl.FP4],
    sa: pl.Tensor[[128, 2], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[64, 1152], pl.FP4],
    sb: pl.Tensor[[2, 1152], pl.FP8E8M0, pl.MX_B_NN],
    bias: pl.Tensor[[1, 1152], pl.FP32],
    c: pl.Out[pl.Tensor[[128, 1152], pl.FP32]],
):
    l = pl.load(a, [0, 0], [128, 64])
    p = pl.load(sa, [0, 0], [128, 2])
    r = pl.load(b, [0, 0], [64, 1152])
    q = pl.load(sb, [0, 0], [2, 1152])
    start = pl.load(bias, [0, 0], [1, 1152])
    x = pl.matmul_mx_bias(l, p, r, q, start)
    c = pl.store(x, [0, 0], c)
    return c
