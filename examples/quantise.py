"""Two matrices become MX on a vector core, and a second kernel multiplies them on the cube core.

    scalebox run examples/quantise.py
    scalebox run examples/quantise.py --param SOURCE=1 --param TARGET=1 --param RULE=1

`pl.quant_mx` takes numbers and gives elements of 8 or 4 bits, and a scale for each 32 of them along K.
`group_axis=1` makes a left operand. `group_axis=0` makes a right one: it takes rows that are the columns
of B, as weights often lie in memory, and gives the elements transposed.

The scales come out as boxes of 16 rows by 2 groups, in the order of their side. A store writes them as
plain bytes, box after box; the kernel that multiplies views the same bytes as MX_A_ZZ and MX_B_NN.

Here x and y go through the vector core's memory as a whole. Larger ones are quantised some rows at a
time, each with all of K: the bytes of one portion after those of another are the boxes of all rows.
"""

from scalebox.ir import language as pl

M = pl.param("M", 64)  # rows of A: a multiple of 16
K = pl.param("K", 256)  # a multiple of 64
N = pl.param("N", 64)  # columns of B: a multiple of 32, of 64 for FP4
SOURCE = (pl.FP32, pl.BF16, pl.FP16)[pl.param("SOURCE", 0)]  # FP4 is made of BF16 or FP16 only
TARGET = (pl.FP8E4M3FN, pl.FP4)[pl.param("TARGET", 0)]
RULE = ("floor", "nv")[pl.param("RULE", 0)]  # the scale rule of OCP, and the one that rounds up

GROUP = 32  # elements that share a scale
GROUPS = K // GROUP


@pl.program
class Quantise:
    """A kernel for the vector core, and one for the cube core that takes what it made."""

    @pl.function(type=pl.FunctionType.InCore)
    def quantise(
        self,
        x: pl.Tensor[[M, K], SOURCE],
        y: pl.Tensor[[N, K], SOURCE],
        a: pl.Out[pl.Tensor[[M, K], TARGET]],
        a_bytes: pl.Out[pl.Tensor[[1, M * GROUPS], pl.FP8E8M0]],
        b: pl.Out[pl.Tensor[[K, N], TARGET]],
        b_bytes: pl.Out[pl.Tensor[[1, GROUPS * N], pl.FP8E8M0]],
    ):
        """Make a left operand of x and a right one of y."""
        x_tile = pl.load(x, [0, 0], [M, K], target_memory=pl.Mem.Vec)
        rows, row_scales = pl.quant_mx(x_tile, group_axis=1, dtype=TARGET, rule=RULE)
        a = pl.store(rows, [0, 0], a)
        # The last argument says as what the bytes are stored: one row of all of them.
        a_bytes = pl.store(row_scales, [0, 0], a_bytes, [1, M * GROUPS])

        y_tile = pl.load(y, [0, 0], [N, K], target_memory=pl.Mem.Vec)
        turned, turned_scales = pl.quant_mx(y_tile, group_axis=0, dtype=TARGET, rule=RULE)
        b = pl.store(turned, [0, 0], b)
        b_bytes = pl.store(turned_scales, [0, 0], b_bytes, [1, GROUPS * N])
        return a, a_bytes, b, b_bytes

    @pl.function(type=pl.FunctionType.InCore)
    def multiply(
        self,
        a: pl.Tensor[[M, K], TARGET],
        a_bytes: pl.Tensor[[1, M * GROUPS], pl.FP8E8M0],
        b: pl.Tensor[[K, N], TARGET],
        b_bytes: pl.Tensor[[1, GROUPS * N], pl.FP8E8M0],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Multiply, with the bytes of the scales viewed as what they are."""
        a_scale = pl.tensor.view(a_bytes, shape=[M, GROUPS], layout=pl.MX_A_ZZ)
        b_scale = pl.tensor.view(b_bytes, shape=[GROUPS, N], layout=pl.MX_B_NN)
        a_tile = pl.load(a, [0, 0], [M, K])
        as_tile = pl.load(a_scale, [0, 0], [M, GROUPS])
        b_tile = pl.load(b, [0, 0], [K, N])
        bs_tile = pl.load(b_scale, [0, 0], [GROUPS, N])
        c = pl.store(pl.matmul_mx(a_tile, as_tile, b_tile, bs_tile), [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[M, K], SOURCE],
        y: pl.Tensor[[N, K], SOURCE],
        a: pl.Out[pl.Tensor[[M, K], TARGET]],
        a_bytes: pl.Out[pl.Tensor[[1, M * GROUPS], pl.FP8E8M0]],
        b: pl.Out[pl.Tensor[[K, N], TARGET]],
        b_bytes: pl.Out[pl.Tensor[[1, GROUPS * N], pl.FP8E8M0]],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Launch one after the other: the second one waits for the tensors of the first."""
        a, a_bytes, b, b_bytes = self.quantise(x, y, a, a_bytes, b, b_bytes)
        c = self.multiply(a, a_bytes, b, b_bytes, c)
        return c
