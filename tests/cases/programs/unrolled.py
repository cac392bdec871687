"""Loops that are written out: over K in a kernel, one within another, and around launches."""

from scalebox.ir import language as pl

STEPS = pl.param("STEPS", 4)


@pl.program
class Unrolled:
    @pl.function(type=pl.FunctionType.InCore)
    def tile(
        self,
        a: pl.Tensor[[32, 256], pl.FP8E4M3FN],
        sa: pl.Tensor[[32, 8], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[256, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[8, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        row: pl.Scalar[pl.INDEX],
    ):
        acc = pl.matmul_mx(
            pl.load(a, [row, 0], [16, 64]),
            pl.load(sa, [row, 0], [16, 2]),
            pl.load(b, [0, 0], [64, 32]),
            pl.load(sb, [0, 0], [2, 32]),
        )
        for s in pl.unroll(1, STEPS):
            for half in pl.unroll(0, 4, 2):
                k = s * 64
                if half < s:
                    acc = pl.matmul_mx_acc(
                        acc,
                        pl.load(a, [row, k], [16, 64]),
                        pl.load(sa, [row, half], [16, 2]),
                        pl.load(b, [k, 0], [64, 32]),
                        pl.load(sb, [half, 0], [2, 32]),
                    )
            for again in pl.range(s):
                acc = pl.matmul_mx_acc(
                    acc,
                    pl.load(a, [row, again * 64], [16, 64]),
                    pl.load(sa, [row, 0], [16, 2]),
                    pl.load(b, [0, 0], [64, 32]),
                    pl.load(sb, [0, 0], [2, 32]),
                )
        c = pl.store(acc, [row, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[32, 256], pl.FP8E4M3FN],
        sa: pl.Tensor[[32, 8], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[256, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[8, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ):
        for r in pl.unroll(2):
            c = self.tile(a, sa, b, sb, c, r * 16)
        return c
