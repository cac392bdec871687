"""Tiles that one trip hands to the next: in Mat, moved where it is used, and in Left, with its scales."""

from scalebox.ir import language as pl

TRIPS = pl.param("TRIPS", 3)


@pl.program
class CarriedTiles:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 512], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 16], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        p = pl.load(sa, [0, 0], [16, 2])
        q = pl.load(sb, [0, 0], [2, 32])
        bt = pl.load(b, [0, 0], [64, 32])
        now = pl.load(a, [0, 0], [16, 64])
        acc = pl.matmul_mx(now, p, bt, q)
        left = pl.move(pl.load(a, [0, 64], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
        for i in pl.range(TRIPS):
            acc = pl.matmul_mx_acc(acc, now, p, bt, q)
            now = pl.load(a, [0, i * 64], [16, 64])
            s = pl.move(pl.load(sa, [0, i * 2], [16, 2]), pl.Mem.LeftScale)
            acc = pl.matmul_mx_acc(acc, left, s, bt, q)
            left = pl.move(pl.load(a, [0, i * 128], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
        acc = pl.matmul_mx_acc(acc, now, p, bt, q)
        acc = pl.matmul_mx_acc(acc, left, p, bt, q)
        c = pl.store(acc, [0, 0], c)
        return c
