"""Two 8-bit float formats in one matmul: E5M2 on the left, E4M3 on the right.

    scalebox run examples/mx_mixed_fp8.py

E5M2 has a wider range and infinities, E4M3 one more bit of precision. The cube multiplies either
with either, and 4-bit formats among themselves; an 8-bit with a 4-bit format it refuses.
"""

from scalebox.ir import language as pl

M = pl.param("M", 64)  # a multiple of 16
K = pl.param("K", 128)  # a multiple of 64
N = pl.param("N", 128)  # a multiple of 32
GROUPS = K // 32  # one scale for 32 elements along K

LEFT = pl.FP8E5M2  # try pl.FP8E4M3FN
RIGHT = pl.FP8E4M3FN  # try pl.FP4 to see the error


@pl.program
class MxMixedFp8:
    """A single product, small enough for one load of everything."""

    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], LEFT],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], RIGHT],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Multiply, all of K at once."""
        a_l1 = pl.load(a, [0, 0], [M, K], target_memory=pl.Mem.Mat)
        as_l1 = pl.load(a_scale, [0, 0], [M, GROUPS], target_memory=pl.Mem.Mat)
        b_l1 = pl.load(b, [0, 0], [K, N], target_memory=pl.Mem.Mat)
        bs_l1 = pl.load(b_scale, [0, 0], [GROUPS, N], target_memory=pl.Mem.Mat)
        a_l0 = pl.move(a_l1, target_memory=pl.Mem.Left)
        as_l0 = pl.move(as_l1, target_memory=pl.Mem.LeftScale)
        b_l0 = pl.move(b_l1, target_memory=pl.Mem.Right)
        bs_l0 = pl.move(bs_l1, target_memory=pl.Mem.RightScale)
        product = pl.matmul_mx(a_l0, as_l0, b_l0, bs_l0)
        c = pl.store(product, [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], LEFT],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], RIGHT],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Launch the kernel once."""
        c = self.gemm(a, a_scale, b, b_scale, c)
        return c
