"""A pipelined loop that hands a tile to its next trip: its load must not overtake the last use of the old."""

from scalebox.ir import language as pl

STAGE = pl.param("STAGE", 2)
TRIPS = pl.param("TRIPS", 3)


@pl.program
class CarriedTilesPipelined:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 512], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 16], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[512, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[16, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        t = pl.load(a, [0, 0], [16, 64])
        p = pl.load(sa, [0, 0], [16, 2])
        acc = pl.matmul_mx(t, p, pl.load(b, [0, 0], [64, 32]), pl.load(sb, [0, 0], [2, 32]))
        for k in pl.pipeline(0, TRIPS * 64, 64, stage=STAGE):
            g = k // 32
            bt = pl.load(b, [k, 0], [64, 32])
            acc = pl.matmul_mx_acc(acc, t, p, bt, pl.load(sb, [g, 0], [2, 32]))
            t = pl.load(a, [0, k], [16, 64])
            p = pl.load(sa, [0, g], [16, 2])
        acc = pl.matmul_mx_acc(acc, t, p, pl.load(b, [64, 0], [64, 32]), pl.load(sb, [2, 0], [2, 32]))
        c = pl.store(acc, [0, 0], c)
        return c
