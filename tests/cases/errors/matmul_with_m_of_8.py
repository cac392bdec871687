from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[8, 128], pl.FP8E4M3FN],
        sa: pl.Tensor[[8, 4], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[128, 128], pl.FP8E4M3FN],
        sb: pl.Tensor[[4, 128], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[8, 128], pl.FP32]],
    ):
        a0 = pl.move(pl.load(a, [0, 0], [8, 128], target_memory=pl.Mem.Mat), pl.Mem.Left)
        p0 = pl.move(pl.load(sa, [0, 0], [8, 4], target_memory=pl.Mem.Mat), pl.Mem.LeftScale)
        b0 = pl.move(pl.load(b, [0, 0], [128, 128], target_memory=pl.Mem.Mat), pl.Mem.Right)
        q0 = pl.move(pl.load(sb, [0, 0], [4, 128], target_memory=pl.Mem.Mat), pl.Mem.RightScale)
        acc = pl.matmul_mx(a0, p0, b0, q0)
        c = pl.store(acc, [0, 0], c)
        return c
