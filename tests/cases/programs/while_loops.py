"""Loops that go on while something holds: over K in a kernel, and over rows in what launches it."""

from scalebox.ir import language as pl

K = pl.param("K", 256)


@pl.program
class WhileLoops:
    @pl.function(type=pl.FunctionType.InCore)
    def row(
        self,
        a: pl.Tensor[[64, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        end: pl.Scalar[pl.INDEX],
        number: pl.Scalar[pl.INDEX],
    ):
        first = pl.matmul_mx(
            pl.load(a, [number * 16, 0], [16, 64]),
            pl.load(sa, [number * 16, 0], [16, 2]),
            pl.load(b, [0, 0], [64, 32]),
            pl.load(sb, [0, 0], [2, 32]),
        )
        for acc, step in pl.while_(init_values=(first, 1)):
            pl.cond(step * 64 < end)
            more = pl.matmul_mx_acc(
                acc,
                pl.load(a, [number * 16, step * 64], [16, 64]),
                pl.load(sa, [number * 16, 0], [16, 2]),
                pl.load(b, [step * 64, 0], [64, 32]),
                pl.load(sb, [0, 0], [2, 32]),
            )
            acc_next, step_next = pl.yield_(more, step + 1)
        c = pl.store(acc_next, [number * 16, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[64, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        end: pl.Scalar[pl.INDEX],
    ):
        left = end
        while left > 0:
            for r in pl.range(4):
                c = self.row(a, sa, b, sb, c, left, r)
            left = left - 64
            if left > 64:
                left = left - 64
        return c
