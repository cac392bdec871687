"""One scale tile serves two data tiles, and one data tile is read under two scale tiles."""

from scalebox.ir import language as pl

STAGE = pl.param("STAGE", 2)


@pl.program
class SharedScale:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 512], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 16], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[512, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[16, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        a0 = pl.move(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
        a1 = pl.move(pl.load(a, [0, 64], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
        b0 = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), pl.Mem.Right)
        p = pl.move(pl.load(sa, [0, 0], [16, 2]), pl.Mem.LeftScale)
        q0 = pl.move(pl.load(sb, [0, 0], [2, 32]), pl.Mem.RightScale)
        q1 = pl.move(pl.load(sb, [2, 0], [2, 32]), pl.Mem.RightScale)
        acc = pl.matmul_mx(a0, p, b0, q0)
        acc = pl.matmul_mx_acc(acc, a1, p, b0, q1)
        acc = pl.matmul_mx_acc(acc, a0, p, b0, q0)
        for k in pl.pipeline(128, 512, 64, stage=STAGE):
            ak = pl.move(pl.load(a, [0, k], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
            qk = pl.move(pl.load(sb, [k // 32, 0], [2, 32]), pl.Mem.RightScale)
            acc = pl.matmul_mx_acc(acc, ak, p, b0, qk)
            acc = pl.matmul_mx_acc(acc, ak, p, b0, q1)
        c = pl.store(acc, [0, 0], c)
        return c
