# p serves l and m, which lie at two addresses: it is moved again before each consumer, and the first move
# is dropped. q serves r only and stays.
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
    m = pl.move(pl.load(a, [0, 64], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
    x = pl.matmul_mx(l, p, r, q)
    y = pl.matmul_mx_acc(x, m, p, r, q)
