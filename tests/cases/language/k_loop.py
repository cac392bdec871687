from scalebox.ir import language as pl


@pl.program
class Gemm:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[64, 1024], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[1024, 128], pl.FP8E4M3FN],
        sb: pl.Tensor[[32, 128], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
    ):
        a0 = pl.move(pl.load(a, [0, 0], [64, 256], target_memory=pl.Mem.Mat), pl.Mem.Left)
        p0 = pl.move(pl.load(sa, [0, 0], [64, 8]), target_memory=pl.Mem.LeftScale)
        b0 = pl.move(pl.load(b, [0, 0], [256, 128], target_memory=pl.Mem.Mat), pl.Mem.Right)
        q0 = pl.move(pl.load(sb, [0, 0], [8, 128]), target_memory=pl.Mem.RightScale)
        acc = pl.matmul_mx(a0, p0, b0, q0)
        for k in pl.pipeline(256, 1024, 256, stage=2):
            g = k // 32
            ak = pl.move(pl.load(a, [0, k], [64, 256], target_memory=pl.Mem.Mat), pl.Mem.Left)
            pk = pl.move(pl.load(sa, [0, g], [64, 8]), target_memory=pl.Mem.LeftScale)
            bk = pl.move(pl.load(b, [k, 0], [256, 128], target_memory=pl.Mem.Mat), pl.Mem.Right)
            qk = pl.move(pl.load(sb, [g, 0], [8, 128]), target_memory=pl.Mem.RightScale)
            acc = pl.matmul_mx_acc(acc, ak, pk, bk, qk)
        c = pl.store(acc, [0, 0], c)
        return c
