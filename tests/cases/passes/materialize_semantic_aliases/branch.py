# Both arms make x in a buffer of its own name; joined, they are one buffer with what the branch gives.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[16, 512], pl.FP8E4M3FN],
    sa: pl.Tensor[[16, 16], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
    sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
    n: pl.Scalar[pl.INDEX],
):
    l = pl.move(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
    p = pl.move(pl.load(sa, [0, 0], [16, 2]), pl.Mem.LeftScale)
    r = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), pl.Mem.Right)
    q = pl.move(pl.load(sb, [0, 0], [2, 32]), pl.Mem.RightScale)
    if n > 0:
        x = pl.matmul_mx(l, p, r, q)
    else:
        w = pl.matmul_mx(l, p, r, q)
        x = pl.matmul_mx_acc(w, l, p, r, q)
    y = pl.matmul_mx_acc(x, l, p, r, q)
