# Operands that the kernel moved itself are left alone, although steps of K would be faster.
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
    left = pl.move(l, pl.Mem.Left)
    right = pl.move(r, pl.Mem.Right)
    x = pl.matmul_mx(left, pl.move(p, pl.Mem.LeftScale), right, pl.move(q, pl.Mem.RightScale))
    c = pl.store(x, [0, 0], c)
    return c
