# Every load goes to Mat, since the cube is fed from there; each operand is moved just before the matmul.
# The bias row goes by Mat to Bias. The accumulator is already where the next matmul wants it.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
    sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
    sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
    bias: pl.Tensor[[1, 32], pl.FP32],
    c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
) -> pl.Tensor[[16, 32], pl.FP32]:
    l = pl.load(a, [0, 0], [16, 64])
    p = pl.load(sa, [0, 0], [16, 2])
    r = pl.load(b, [0, 0], [64, 32])
    q = pl.load(sb, [0, 0], [2, 32])
    d = pl.load(bias, [0, 0], [1, 32])
    x = pl.matmul_mx_bias(l, p, r, q, d)
    y = pl.matmul_mx_acc(x, l, p, r, q)
    return pl.store(y, [0, 0], c)
