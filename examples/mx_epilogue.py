"""A layer in one kernel: quantise, multiply, add a bias, ReLU, round to BF16.

    scalebox run examples/mx_epilogue.py
    scalebox run examples/mx_epilogue.py --param M=256
    scalebox run examples/mx_epilogue.py --param M=256 --param FIXPIPE=1

A vector core and the cube core work on it together. The vector core quantises and hands elements and
scales to the cube core's L1; the cube multiplies. A kernel is written as one text: what an op needs
decides its core, and the compiler makes two programs of it, which wait for each other where a tile
changes hands.

Each core does its part in the order of the text. So the vector core, which finishes a portion of rows
in `layer`, has to wait for its sums before it may quantise the next portion. In `layer_by_fixpipe` the
bias starts the sums, and the way out of the accumulator does the rest: the vector core runs ahead, and
`stage=2` gives it a second buffer for that.
"""

from scalebox.ir import language as pl

M = pl.param("M", 64)  # a multiple of ROWS
K = pl.param("K", 256)  # a multiple of 64
N = pl.param("N", 64)  # a multiple of 32
ROWS = pl.param("ROWS", 32)  # of x in a portion: a multiple of 16
FIXPIPE = pl.param("FIXPIPE", 0)  # 1: bias, ReLU and rounding by the cube core


@pl.program
class MxEpilogue:
    """y = max(x · wᵀ + bias, 0), with x and w in MXFP8 for the product."""

    @pl.function(type=pl.FunctionType.InCore)
    def layer(
        self,
        x: pl.Tensor[[M, K], pl.FP32],
        w: pl.Tensor[[N, K], pl.BF16],
        bias: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[M, N], pl.BF16]],
    ):
        """Quantise, multiply on the cube core, and come back to the vector core for the rest."""
        # Rows of w are columns of the right operand; group_axis=0 turns them. They stay in L1.
        w_tile = pl.load(w, [0, 0], [N, K], target_memory=pl.Mem.Vec)
        turned, turned_scale = pl.quant_mx(w_tile, group_axis=0)
        b = pl.move(turned, target_memory=pl.Mem.Mat)
        b_scale = pl.move(turned_scale, target_memory=pl.Mem.Mat)
        row = pl.load(bias, [0, 0], [1, N], target_memory=pl.Mem.Vec)

        # Other moves are left out: to L1, to the buffers of the cube, and back to the vector core.
        for i in pl.range(0, M, ROWS):
            portion = pl.load(x, [i, 0], [ROWS, K], target_memory=pl.Mem.Vec)
            a, a_scale = pl.quant_mx(portion, group_axis=1)
            sums = pl.matmul_mx(a, a_scale, b, b_scale)
            positive = pl.relu(pl.col_expand_add(sums, row))
            y = pl.store(pl.cast(positive, pl.BF16, mode="rint"), [i, 0], y)
        return y

    @pl.function(type=pl.FunctionType.InCore)
    def layer_by_fixpipe(
        self,
        x: pl.Tensor[[M, K], pl.FP32],
        w: pl.Tensor[[N, K], pl.BF16],
        bias: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[M, N], pl.BF16]],
    ):
        """Quantise, and leave the rest to the cube core."""
        w_tile = pl.load(w, [0, 0], [N, K], target_memory=pl.Mem.Vec)
        turned, turned_scale = pl.quant_mx(w_tile, group_axis=0)
        b = pl.move(turned, target_memory=pl.Mem.Mat)
        b_scale = pl.move(turned_scale, target_memory=pl.Mem.Mat)
        row = pl.load(bias, [0, 0], [1, N], target_memory=pl.Mem.Mat)

        for i in pl.pipeline(0, M, ROWS, stage=2):
            portion = pl.load(x, [i, 0], [ROWS, K], target_memory=pl.Mem.Vec)
            a, a_scale = pl.quant_mx(portion, group_axis=1)
            sums = pl.matmul_mx_bias(a, a_scale, b, b_scale, row)
            y = pl.store(sums, [i, 0], y, pre_relu=True)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[M, K], pl.FP32],
        w: pl.Tensor[[N, K], pl.BF16],
        bias: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[M, N], pl.BF16]],
    ):
        """Launch one of the kernels."""
        pl.static_assert(M % ROWS == 0, "M must be a multiple of ROWS")
        if FIXPIPE == 0:
            y = self.layer(x, w, bias, y)
        else:
            y = self.layer_by_fixpipe(x, w, bias, y)
        return y
