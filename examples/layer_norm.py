"""Layer norm: every row less its mean, over its deviation, times a gain, plus a bias.

    scalebox run examples/layer_norm.py
    scalebox run examples/layer_norm.py --param M=256

A kernel for a vector core alone. A reduction of rows gives a column [ROWS, 1], and the ops
`row_expand_…` take such a column beside a tile; `col_expand_…` take a row [1, N].

A plain loop is enough to overlap: the vector unit reads a portion early in a trip, and from then on the
next one may be loaded. It is busy most of the time, the more so the more portions there are.
"""

from scalebox.ir import language as pl

M = pl.param("M", 64)  # a multiple of ROWS
N = pl.param("N", 512)  # a multiple of 8: rows in the vector core's memory take whole 32 bytes
ROWS = pl.param("ROWS", 16)  # in a portion

MEAN = 1.0 / N
EPSILON = 1e-5


@pl.program
class LayerNorm:
    """One kernel, and the orchestration function that launches it."""

    @pl.function(type=pl.FunctionType.InCore)
    def norm(
        self,
        x: pl.Tensor[[M, N], pl.FP32],
        gain: pl.Tensor[[1, N], pl.FP32],
        bias: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Norm a portion of rows after the other."""
        pl.static_assert(M % ROWS == 0, "M must be a multiple of ROWS")

        gains = pl.load(gain, [0, 0], [1, N], target_memory=pl.Mem.Vec)
        biases = pl.load(bias, [0, 0], [1, N], target_memory=pl.Mem.Vec)
        for i in pl.range(0, M, ROWS):
            rows = pl.load(x, [i, 0], [ROWS, N], target_memory=pl.Mem.Vec)
            mean = pl.muls(pl.row_sum(rows), MEAN)
            centred = pl.row_expand_sub(rows, mean)
            variance = pl.muls(pl.row_sum(pl.mul(centred, centred)), MEAN)
            factor = pl.rsqrt(pl.adds(variance, EPSILON))
            normed = pl.row_expand_mul(centred, factor)
            y = pl.store(pl.col_expand_add(pl.col_expand_mul(normed, gains), biases), [i, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[M, N], pl.FP32],
        gain: pl.Tensor[[1, N], pl.FP32],
        bias: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Launch the kernel once."""
        y = self.norm(x, gain, bias, y)
        return y
