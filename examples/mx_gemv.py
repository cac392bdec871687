"""A decode step: one row of activations times a matrix of weights, both in MXFP8.

    scalebox run examples/mx_gemv.py
    scalebox run examples/mx_gemv.py --param K=8192 --param BLOCKS=4

One token is one row, so the left operand of `gemv_mx` is a row [1, K], and its scales are a plain row of
one code for 32 elements; the weights are a matrix with scales in MX_B_NN. Every weight is used once:
the time goes into fetching them, which the loop over K does two steps at a time while the cube works.

The columns of the result are dealt out to blocks. The sum starts from a row of biases, and the fixpipe
rounds it to BF16 on its way out.
"""

from scalebox.ir import language as pl

BLOCKS = pl.param("BLOCKS", 8)
K = pl.param("K", 4096)  # a multiple of STEP
N = pl.param("N", 512)  # a multiple of 32 * BLOCKS
STEP = 256  # of K in one product

COLS = N // BLOCKS  # of the result in one block
GROUP = 32  # elements that share a scale
GROUPS = K // GROUP
STEP_GROUPS = STEP // GROUP


@pl.program
class MxGemv:
    """A row times a matrix, columns of which are dealt out to blocks."""

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[1, K], pl.FP8E4M3FN],
        x_scale: pl.Tensor[[1, GROUPS], pl.FP8E8M0],
        w: pl.Tensor[[K, N], pl.FP8E4M3FN],
        w_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[1, N], pl.BF16]],
    ):
        """Launch a block for every COLS columns of y."""
        pl.static_assert(K % STEP == 0, "K must be a multiple of STEP")
        pl.static_assert(N % (32 * BLOCKS) == 0, "N must be a multiple of 32 * BLOCKS")

        for i in pl.spmd(BLOCKS, name_hint="columns"):
            col = i * COLS

            # The first step of K starts the sums from the biases.
            x_tile = pl.load(x, [0, 0], [1, STEP])
            xs_tile = pl.load(x_scale, [0, 0], [1, STEP_GROUPS])
            w_tile = pl.load(w, [0, col], [STEP, COLS])
            ws_tile = pl.load(w_scale, [0, col], [STEP_GROUPS, COLS])
            start = pl.load(bias, [0, col], [1, COLS])
            acc = pl.gemv_mx_bias(x_tile, xs_tile, w_tile, ws_tile, start)

            # The other steps of K add to them.
            for k in pl.pipeline(STEP, K, STEP, stage=2):
                g = k // GROUP
                x_next = pl.load(x, [0, k], [1, STEP])
                xs_next = pl.load(x_scale, [0, g], [1, STEP_GROUPS])
                w_next = pl.load(w, [k, col], [STEP, COLS])
                ws_next = pl.load(w_scale, [g, col], [STEP_GROUPS, COLS])
                acc = pl.gemv_mx_acc(acc, x_next, xs_next, w_next, ws_next)

            y = pl.store(acc, [0, col], y)
        return y
