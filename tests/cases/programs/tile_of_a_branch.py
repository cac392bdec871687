"""A branch decides what a tile holds: one that is placed by what follows, and one in Left."""

from scalebox.ir import language as pl


@pl.program
class TileOfABranch:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 256], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 8], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
        bt = pl.load(b, [0, 0], [64, 32])
        q = pl.load(sb, [0, 0], [2, 32])
        t = pl.load(a, [0, 0], [16, 64])
        p = pl.load(sa, [0, 0], [16, 2])
        if n > 0:
            t = pl.load(a, [0, 64], [16, 64])
            p = pl.load(sa, [0, 2], [16, 2])
            u = pl.move(t, pl.Mem.Left)
        else:
            u = pl.move(pl.load(a, [0, 128], [16, 64]), pl.Mem.Left)
        acc = pl.matmul_mx(t, p, bt, q)
        s = pl.move(pl.load(sa, [0, 4], [16, 2]), pl.Mem.LeftScale)
        acc = pl.matmul_mx_acc(acc, u, s, bt, q)
        c = pl.store(acc, [0, 0], c)
        return c
