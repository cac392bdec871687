"""Launches that wait for others by name: a chain through a loop, a barrier, and a grid."""

from scalebox.ir import language as pl

TRIPS = pl.param("TRIPS", 3)


@pl.program
class Submits:
    @pl.function(type=pl.FunctionType.InCore)
    def product(
        self,
        a: pl.Tensor[[64, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        row: pl.Scalar[pl.INDEX],
        c: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ):
        at = row + pl.tile.get_block_idx() * 16
        acc = pl.matmul_mx(
            pl.load(a, [at, 0], [16, 64]),
            pl.load(sa, [at, 0], [16, 2]),
            pl.load(b, [0, 0], [64, 32]),
            pl.load(sb, [0, 0], [2, 32]),
        )
        c = pl.store(acc, [at, 0], c)
        return c

    @pl.function(type=pl.FunctionType.InCore)
    def biased(
        self,
        a: pl.Tensor[[64, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        z: pl.Tensor[[1, 2048], pl.FP32],
        c: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        d: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ):
        acc = pl.matmul_mx_bias(
            pl.load(a, [0, 0], [64, 64]),
            pl.load(sa, [0, 0], [64, 2]),
            pl.load(b, [0, 0], [64, 32]),
            pl.load(sb, [0, 0], [2, 32]),
            pl.load(z, [0, 32], [1, 32]),
        )
        c = pl.store(acc, [0, 0], c)
        d = pl.store(acc, [0, 0], d)
        return d, c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[64, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        d: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ):
        scratch = pl.create_tensor([64, 32], dtype=pl.FP32)
        prev = None
        for r in pl.range(TRIPS):
            scratch, tid = pl.submit(self.product, a, sa, b, sb, r * 16, scratch, deps=[prev])
            if r == 1:
                prev = None
            else:
                prev = tid
        scratch, grid = pl.spmd_submit(
            self.product, a, sa, b, sb, 0, scratch, core_num=4, deps=[prev]
        )
        done = pl.system.task_dummy(deps=[prev, grid])
        bias = pl.tensor.view(scratch, [1, 2048])
        (d, c), last = pl.submit(self.biased, a, sa, b, sb, bias, c, d, deps=[done])
        return c, d
