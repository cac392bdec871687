"""A branch that adds to the accumulator only when a scalar argument asks for it."""

from scalebox.ir import language as pl


@pl.program
class BranchWithoutElse:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
        at = pl.move(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
        st = pl.move(pl.load(sa, [0, 0], [16, 2]), pl.Mem.LeftScale)
        bt = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), pl.Mem.Right)
        tt = pl.move(pl.load(sb, [0, 0], [2, 32]), pl.Mem.RightScale)
        acc = pl.matmul_mx(at, st, bt, tt)
        if n > 0:
            acc = pl.matmul_mx_acc(acc, at, st, bt, tt)
            if n > 1:
                acc = pl.matmul_mx_acc(acc, at, st, bt, tt)
        c = pl.store(acc, [0, 0], c)
        return c
