"""The first step of K peeled, the others accumulated in a pipelined loop."""

from scalebox.ir import language as pl

M = pl.param("M", 32)
N = pl.param("N", 64)
K = pl.param("K", 256)
STEP = pl.param("STEP", 64)
STAGE = pl.param("STAGE", 2)
G = K // 32
SG = STEP // 32


@pl.program
class KLoop:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        sb: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        a0 = pl.move(pl.load(a, [0, 0], [M, STEP], target_memory=pl.Mem.Mat), pl.Mem.Left)
        p0 = pl.move(pl.load(sa, [0, 0], [M, SG], target_memory=pl.Mem.Mat), pl.Mem.LeftScale)
        b0 = pl.move(pl.load(b, [0, 0], [STEP, N], target_memory=pl.Mem.Mat), pl.Mem.Right)
        q0 = pl.move(pl.load(sb, [0, 0], [SG, N], target_memory=pl.Mem.Mat), pl.Mem.RightScale)
        acc = pl.matmul_mx(a0, p0, b0, q0)
        for k in pl.pipeline(STEP, K, STEP, stage=STAGE):
            g = k // 32
            ak = pl.move(pl.load(a, [0, k], [M, STEP], target_memory=pl.Mem.Mat), pl.Mem.Left)
            pk = pl.move(pl.load(sa, [0, g], [M, SG], target_memory=pl.Mem.Mat), pl.Mem.LeftScale)
            bk = pl.move(pl.load(b, [k, 0], [STEP, N], target_memory=pl.Mem.Mat), pl.Mem.Right)
            qk = pl.move(pl.load(sb, [g, 0], [SG, N], target_memory=pl.Mem.Mat), pl.Mem.RightScale)
            acc = pl.matmul_mx_acc(acc, ak, pk, bk, qk)
        c = pl.store(acc, [0, 0], c)
        return c
