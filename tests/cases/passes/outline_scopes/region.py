# A region becomes an InCore function: what it uses from around it are parameters, what it writes is returned.
from scalebox.ir import language as pl


@pl.program
class Program:
    @pl.function
    def main(
        self,
        a: pl.Tensor[[64, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ):
        for r in pl.range(0, 64, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                left = pl.load(a, [r, 0], [16, 64])
                acc = pl.matmul_mx(
                    left,
                    pl.load(sa, [r, 0], [16, 2]),
                    pl.load(b, [0, 0], [64, 32]),
                    pl.load(sb, [0, 0], [2, 32]),
                )
                c = pl.store(acc, [r, 0], c)
        return c
