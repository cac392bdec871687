# Tiles and tensors are carried like scalars: the accumulator, and the output that each trip stores into.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[16, 256], pl.FP8E4M3FN],
    sa: pl.Tensor[[16, 8], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
    sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
    c: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
) -> pl.Tensor[[64, 32], pl.FP32]:
    r = pl.load(b, [0, 0], [64, 32])
    q = pl.load(sb, [0, 0], [2, 32])
    acc = pl.matmul_mx(pl.load(a, [0, 0], [16, 64]), pl.load(sa, [0, 0], [16, 2]), r, q)
    for k in pl.range(64, 256, 64):
        t = pl.load(a, [0, k], [16, 64])
        p = pl.load(sa, [0, k // 32], [16, 2])
        acc = pl.matmul_mx_acc(acc, t, p, r, q)
        c = pl.store(acc, [k // 4, 0], c)
    return c
