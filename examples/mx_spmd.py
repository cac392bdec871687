"""One matmul over a grid of blocks: each block makes some rows of C.

    scalebox run examples/mx_spmd.py
    scalebox run examples/mx_spmd.py --param BLOCKS=8
    scalebox compile examples/mx_spmd.py --print-after OutlineScopes

`for i in pl.spmd(BLOCKS)` looks like a loop, but its body is what a core does: the compiler makes a
kernel of it, and of the loop a launch of that kernel with BLOCKS blocks, `i` being the number of the
block. What the body uses from around it, such as `col` here, becomes a parameter. The offsets of the
scales must lie on box borders in every block; the compiler follows them through both argument lists.

The blocks run at once, each on a cluster of its own, as long as the machine has as many (`cores`).
"""

from scalebox.ir import language as pl

BLOCKS = pl.param("BLOCKS", 4)
M = pl.param("M", 256)  # a multiple of 16 * BLOCKS
K = pl.param("K", 512)  # a multiple of STEP
N = pl.param("N", 256)  # a multiple of COLS
STEP = 128  # of K in one product
COLS = 128  # of C in one launch

ROWS = M // BLOCKS  # of C in one block
GROUP = 32  # elements that share a scale
GROUPS = K // GROUP
STEP_GROUPS = STEP // GROUP


@pl.program
class MxSpmd:
    """Launches over a grid, with what a block does written in the place of the launch."""

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Launch a grid for every COLS columns of C."""
        pl.static_assert(M % (16 * BLOCKS) == 0, "M must be a multiple of 16 * BLOCKS")
        pl.static_assert(K % STEP == 0, "K must be a multiple of STEP")
        pl.static_assert(N % COLS == 0, "N must be a multiple of COLS")

        for col in pl.parallel(0, N, COLS):
            for i in pl.spmd(BLOCKS, name_hint="rows"):
                row = i * ROWS

                # The first step of K starts the accumulator of this block. Where tiles lie, and how
                # they get there, is left to the compiler.
                a_tile = pl.load(a, [row, 0], [ROWS, STEP])
                as_tile = pl.load(a_scale, [row, 0], [ROWS, STEP_GROUPS])
                b_tile = pl.load(b, [0, col], [STEP, COLS])
                bs_tile = pl.load(b_scale, [0, col], [STEP_GROUPS, COLS])
                acc = pl.matmul_mx(a_tile, as_tile, b_tile, bs_tile)

                # The other steps of K add to it.
                for k in pl.pipeline(STEP, K, STEP, stage=2):
                    g = k // GROUP
                    a_next = pl.load(a, [row, k], [ROWS, STEP])
                    as_next = pl.load(a_scale, [row, g], [ROWS, STEP_GROUPS])
                    b_next = pl.load(b, [k, col], [STEP, COLS])
                    bs_next = pl.load(b_scale, [g, col], [STEP_GROUPS, COLS])
                    acc = pl.matmul_mx_acc(acc, a_next, as_next, b_next, bs_next)

                c = pl.store(acc, [row, col], c)
        return c
