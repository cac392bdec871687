from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[64, 96], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 3], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[96, 128], pl.FP8E4M3FN],
        sb: pl.Tensor[[3, 128], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
    ):
        a0 = pl.move(pl.load(a, [0, 0], [64, 96], target_memory=pl.Mem.Mat), pl.Mem.Left)
        p0 = pl.move(pl.load(sa, [0, 0], [64, 3], target_memory=pl.Mem.Mat), pl.Mem.LeftScale)
        b0 = pl.move(pl.load(b, [0, 0], [96, 128], target_memory=pl.Mem.Mat), pl.Mem.Right)
        q0 = pl.move(pl.load(sb, [0, 0], [3, 128], target_memory=pl.Mem.Mat), pl.Mem.RightScale)
        acc = pl.matmul_mx(a0, p0, b0, q0)
        c = pl.store(acc, [0, 0], c)
        return c
