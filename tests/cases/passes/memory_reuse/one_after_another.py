# L0A has 65,536 bytes; v, u and w, of 32,768, 32,768 and 16,384, would be too much. v and u, the largest,
# get places of their own; w takes that of v, which has been idle for longest.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(
    a: pl.Tensor[[128, 1024], pl.FP8E4M3FN],
    sa: pl.Tensor[[128, 32], pl.FP8E8M0, pl.MX_A_ZZ],
    b: pl.Tensor[[256, 32], pl.FP8E4M3FN],
    sb: pl.Tensor[[8, 32], pl.FP8E8M0, pl.MX_B_NN],
):
    r = pl.load(b, [0, 0], [256, 32])
    q = pl.load(sb, [0, 0], [8, 32])
    v = pl.move(pl.load(a, [0, 0], [128, 256], target_memory=pl.Mem.Mat), pl.Mem.Left)
    x = pl.matmul_mx(v, pl.load(sa, [0, 0], [128, 8]), r, q)
    u = pl.move(pl.load(a, [0, 256], [128, 256], target_memory=pl.Mem.Mat), pl.Mem.Left)
    y = pl.matmul_mx_acc(x, u, pl.load(sa, [0, 8], [128, 8]), r, q)
    w = pl.move(pl.load(a, [0, 512], [64, 256], target_memory=pl.Mem.Mat), pl.Mem.Left)
    z = pl.matmul_mx(w, pl.load(sa, [0, 16], [64, 8]), r, q)
