"""A kernel launched over a grid: each block does its share of the rows, told by its number."""

from scalebox.ir import language as pl

SHARE = pl.param("SHARE", 2)


@pl.program
class SpmdKernel:
    @pl.function(type=pl.FunctionType.InCore)
    def rows(
        self,
        a: pl.Tensor[[96, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[96, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[96, 32], pl.FP32]],
        share: pl.Scalar[pl.INDEX],
    ):
        block = pl.tile.get_block_idx()
        blocks = pl.tile.get_block_num()
        bt = pl.load(b, [0, 0], [64, 32])
        tt = pl.load(sb, [0, 0], [2, 32])
        for j in pl.range(share):
            row = (block * share + j) * 16
            if block < blocks:
                acc = pl.matmul_mx(
                    pl.load(a, [row, 0], [16, 64]), pl.load(sa, [row, 0], [16, 2]), bt, tt
                )
                c = pl.store(acc, [row, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Spmd)
    def grid(
        self,
        a: pl.Tensor[[96, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[96, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[96, 32], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
        with pl.spmd(n):
            c = self.rows(a, sa, b, sb, c, 2)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[96, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[96, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[96, 32], pl.FP32]],
        d: pl.Out[pl.Tensor[[96, 32], pl.FP32]],
    ):
        with pl.spmd(6 // SHARE):
            c = self.rows(a, sa, b, sb, c, SHARE)
        d = self.grid(a, sa, b, sb, d, 3)
        return c, d
