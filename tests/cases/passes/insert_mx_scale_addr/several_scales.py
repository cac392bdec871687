# l is read under p and under o: what lies at its address must be the right one of the two each time, so
# both are moved again.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[16, 512], pl.FP8E4M3FN],
    sa: pl.Tensor[[16, 16], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
    sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
):
    l = pl.move(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
    p = pl.move(pl.load(sa, [0, 0], [16, 2]), pl.Mem.LeftScale)
    r = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), pl.Mem.Right)
    q = pl.move(pl.load(sb, [0, 0], [2, 32]), pl.Mem.RightScale)
    o = pl.move(pl.load(sa, [0, 2], [16, 2]), pl.Mem.LeftScale)
    x = pl.matmul_mx(l, p, r, q)
    y = pl.matmul_mx_acc(x, l, o, r, q)
    z = pl.matmul_mx_acc(y, l, p, r, q)
