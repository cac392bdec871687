"""Scalars rebound in loops: an offset that is added up, one that doubles, and both after their loop."""

from scalebox.ir import language as pl

STAGE = pl.param("STAGE", 2)
TRIPS = pl.param("TRIPS", 3)


@pl.program
class CarriedScalars:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 512], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[512, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        p = pl.load(sa, [0, 0], [16, 2])
        q = pl.load(sb, [0, 0], [2, 32])
        at = pl.const(0, pl.INDEX) + 0
        step = 32
        acc = pl.matmul_mx(pl.load(a, [0, 0], [16, 64]), p, pl.load(b, [0, 0], [64, 32]), q)
        for _i in pl.pipeline(TRIPS, stage=STAGE):
            acc = pl.matmul_mx_acc(acc, pl.load(a, [0, at], [16, 64]), p, pl.load(b, [at, 0], [64, 32]), q)
            step = step * 2
            at = at + step
            if step >= 128:
                step = 32
        last = at - step
        acc = pl.matmul_mx_acc(acc, pl.load(a, [0, last + 32], [16, 64]), p, pl.load(b, [at, 0], [64, 32]), q)
        c = pl.store(acc, [0, 0], c)
        return c
