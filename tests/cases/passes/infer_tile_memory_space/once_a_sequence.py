# Two matmuls of one sequence share the moves of l and p; the loop inside is a sequence of its own and moves
# them again. What the kernel moved itself, r and q, is left alone.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
    sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
    sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
):
    l = pl.load(a, [0, 0], [16, 64])
    p = pl.load(sa, [0, 0], [16, 2])
    r = pl.move(pl.load(b, [0, 0], [64, 32]), pl.Mem.Right)
    q = pl.move(pl.load(sb, [0, 0], [2, 32]), pl.Mem.RightScale)
    x = pl.matmul_mx(l, p, r, q)
    y = pl.matmul_mx_acc(x, l, p, r, q)
    for _i in pl.range(2):
        z = pl.matmul_mx(l, p, r, q)
