"""A larger matmul as a grid of launches: each call of the kernel makes one tile of C.

    scalebox run examples/mx_tiled.py
    scalebox run examples/mx_tiled.py --param M=512

The orchestration function runs no tile op itself. It walks over the tiles of C and calls the kernel
for each, with the tile's place as two scalar arguments. The compiler must know that such an offset
lies on a box border of the scales; it follows the arguments back to the loops and proves it.
"""

from scalebox.ir import language as pl

M = pl.param("M", 256)  # a multiple of TILE_M
K = pl.param("K", 512)  # a multiple of TILE_K
N = pl.param("N", 256)  # a multiple of TILE_N
TILE_M, TILE_K, TILE_N = 64, 128, 128  # what one matmul_mx multiplies

GROUP = 32  # elements that share a scale
GROUPS = K // GROUP
TILE_GROUPS = TILE_K // GROUP


@pl.program
class MxTiled:
    """A kernel for one tile of C, and the loops that call it for all of them."""

    @pl.function(type=pl.FunctionType.InCore)
    def tile(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        row: pl.Scalar[pl.INDEX],
        col: pl.Scalar[pl.INDEX],
    ):
        """Make the tile of C whose corner is (row, col)."""
        pl.static_assert(M % TILE_M == 0, "M must be a multiple of TILE_M")
        pl.static_assert(K % TILE_K == 0, "K must be a multiple of TILE_K")
        pl.static_assert(N % TILE_N == 0, "N must be a multiple of TILE_N")

        # The first step of K starts the accumulator of this tile.
        a_l1 = pl.load(a, [row, 0], [TILE_M, TILE_K], target_memory=pl.Mem.Mat)
        as_l1 = pl.load(a_scale, [row, 0], [TILE_M, TILE_GROUPS], target_memory=pl.Mem.Mat)
        b_l1 = pl.load(b, [0, col], [TILE_K, TILE_N], target_memory=pl.Mem.Mat)
        bs_l1 = pl.load(b_scale, [0, col], [TILE_GROUPS, TILE_N], target_memory=pl.Mem.Mat)
        a_l0 = pl.move(a_l1, target_memory=pl.Mem.Left)
        as_l0 = pl.move(as_l1, target_memory=pl.Mem.LeftScale)
        b_l0 = pl.move(b_l1, target_memory=pl.Mem.Right)
        bs_l0 = pl.move(bs_l1, target_memory=pl.Mem.RightScale)
        acc = pl.matmul_mx(a_l0, as_l0, b_l0, bs_l0)

        # The other steps of K add to it.
        for k in pl.pipeline(TILE_K, K, TILE_K, stage=2):
            g = k // GROUP
            a_next = pl.load(a, [row, k], [TILE_M, TILE_K], target_memory=pl.Mem.Mat)
            as_next = pl.load(a_scale, [row, g], [TILE_M, TILE_GROUPS], target_memory=pl.Mem.Mat)
            b_next = pl.load(b, [k, col], [TILE_K, TILE_N], target_memory=pl.Mem.Mat)
            bs_next = pl.load(b_scale, [g, col], [TILE_GROUPS, TILE_N], target_memory=pl.Mem.Mat)
            a_left = pl.move(a_next, target_memory=pl.Mem.Left)
            as_left = pl.move(as_next, target_memory=pl.Mem.LeftScale)
            b_right = pl.move(b_next, target_memory=pl.Mem.Right)
            bs_right = pl.move(bs_next, target_memory=pl.Mem.RightScale)
            acc = pl.matmul_mx_acc(acc, a_left, as_left, b_right, bs_right)

        c = pl.store(acc, [row, col], c)
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
        """Launch the kernel for every tile of C."""
        for row in pl.range(0, M, TILE_M):
            for col in pl.range(0, N, TILE_N):
                c = self.tile(a, a_scale, b, b_scale, c, row, col)
        return c
