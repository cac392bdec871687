"""Regions in an undecided function: in a loop, with two results, and one that only writes."""

from scalebox.ir import language as pl

ROWS = pl.param("ROWS", 3)


@pl.program
class Regions:
    @pl.function
    def main(
        self,
        a: pl.Tensor[[64, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        z: pl.Tensor[[1, 2048], pl.FP32],
        c: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        d: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        e: pl.Out[pl.Tensor[[64, 32], pl.BF16]],
    ):
        for r in pl.parallel(0, ROWS * 16, 16):
            below = r + 16
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="pair"):
                bt = pl.load(b, [0, 0], [64, 32])
                tt = pl.load(sb, [0, 0], [2, 32])
                upper = pl.matmul_mx(
                    pl.load(a, [r, 0], [16, 64]), pl.load(sa, [r, 0], [16, 2]), bt, tt
                )
                c = pl.store(upper, [r, 0], c)
                lower = pl.matmul_mx(
                    pl.load(a, [below, 0], [16, 64]), pl.load(sa, [below, 0], [16, 2]), bt, tt
                )
                d = pl.store(lower, [r, 0], d)
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.matmul_mx_bias(
                pl.load(a, [0, 0], [64, 64]),
                pl.load(sa, [0, 0], [64, 2]),
                pl.load(b, [0, 0], [64, 32]),
                pl.load(sb, [0, 0], [2, 32]),
                pl.load(z, [0, 64], [1, 32]),
            )
            pl.store(acc, [0, 0], e)
        return c, d, e
