"""Scales that are moved before a pipelined loop for data that each of its copies makes anew."""

from scalebox.ir import language as pl

STAGE = pl.param("STAGE", 2)


@pl.program
class ScaleBeforeTheLoop:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 512], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 16], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        bt = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), pl.Mem.Right)
        q = pl.move(pl.load(sb, [0, 0], [2, 32]), pl.Mem.RightScale)
        at = pl.move(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
        p = pl.move(pl.load(sa, [0, 0], [16, 2]), pl.Mem.LeftScale)
        acc = pl.matmul_mx(at, p, bt, q)
        o = pl.move(pl.load(sa, [0, 2], [16, 2]), pl.Mem.LeftScale)
        x = at
        for k in pl.pipeline(64, 512, 64, stage=STAGE):
            ak = pl.move(pl.load(a, [0, k], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
            acc = pl.matmul_mx_acc(acc, ak, o, bt, q)
            pk = pl.move(pl.load(sa, [0, k // 32], [16, 2]), pl.Mem.LeftScale)
            acc = pl.matmul_mx_acc(acc, x, pk, bt, q)
        c = pl.store(acc, [0, 0], c)
        return c
