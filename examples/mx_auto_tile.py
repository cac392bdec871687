"""A matmul that the compiler cuts: whole matrices in L1, one product, and no tile sizes.

    scalebox run examples/mx_auto_tile.py
    scalebox run examples/mx_auto_tile.py --param K=768
    scalebox compile examples/mx_auto_tile.py --diff AutoTileMatmulL0

The kernel loads its operands into L1 and does not move them on. They are larger than the buffers
beside the cube, so the compiler chooses tiles that fit, walks over them, and stores each at its place:
while the cube works on one, the operands of the next are on their way and the one before is stored.
A kernel that moves its operands itself, as mx_tiled does, is left as it is.
"""

from scalebox.ir import language as pl

M = pl.param("M", 256)  # a multiple of 16
K = pl.param("K", 512)  # a multiple of 64
N = pl.param("N", 256)  # a multiple of 32
GROUPS = K // 32  # one scale for 32 elements along K


@pl.program
class MxAutoTile:
    """A kernel without tiles."""

    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Multiply A by B."""
        a_l1 = pl.load(a, [0, 0], [M, K], target_memory=pl.Mem.Mat)
        as_l1 = pl.load(a_scale, [0, 0], [M, GROUPS], target_memory=pl.Mem.Mat)
        b_l1 = pl.load(b, [0, 0], [K, N], target_memory=pl.Mem.Mat)
        bs_l1 = pl.load(b_scale, [0, 0], [GROUPS, N], target_memory=pl.Mem.Mat)
        product = pl.matmul_mx(a_l1, as_l1, b_l1, bs_l1)
        c = pl.store(product, [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Launch the kernel once."""
        c = self.gemm(a, a_scale, b, b_scale, c)
        return c
