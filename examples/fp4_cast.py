"""A left operand in FP4, a right one in FP8: a cast in the kernel makes them meet.

    scalebox run examples/fp4_cast.py
    scalebox disasm examples/fp4_cast.py

The cube multiplies two operands of 8 bits or two of 4 bits, never one of each. Every number of FP4 is
one of FP8 as well, so a vector core can widen the left operand first, and its scales stay as they are.
There is no single instruction for that: the cast is a chain, FP4 to BF16 to FP32 to FP8, and exact.
"""

from scalebox.ir import language as pl

M = pl.param("M", 64)  # a multiple of 16
K = pl.param("K", 128)  # a multiple of 64
N = pl.param("N", 128)  # a multiple of 32

GROUP = 32  # elements that share a scale
GROUPS = K // GROUP


@pl.program
class Fp4Cast:
    """A product of FP4 and FP8, and the same product added to it once more."""

    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP4],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        once: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        twice: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Widen, multiply, store, multiply again onto the sums, store."""
        # The vector core: global memory to Vec, the cast, and over to the cube core's L1.
        narrow = pl.load(a, [0, 0], [M, K], target_memory=pl.Mem.Vec)
        wide = pl.cast(narrow, pl.FP8E4M3FN)
        a_l1 = pl.move(wide, target_memory=pl.Mem.Mat)

        # The cube core: what it always does.
        as_l1 = pl.load(a_scale, [0, 0], [M, GROUPS], target_memory=pl.Mem.Mat)
        b_l1 = pl.load(b, [0, 0], [K, N], target_memory=pl.Mem.Mat)
        bs_l1 = pl.load(b_scale, [0, 0], [GROUPS, N], target_memory=pl.Mem.Mat)
        a_l0 = pl.move(a_l1, target_memory=pl.Mem.Left)
        as_l0 = pl.move(as_l1, target_memory=pl.Mem.LeftScale)
        b_l0 = pl.move(b_l1, target_memory=pl.Mem.Right)
        bs_l0 = pl.move(bs_l1, target_memory=pl.Mem.RightScale)
        acc = pl.matmul_mx(a_l0, as_l0, b_l0, bs_l0)
        once = pl.store(acc, [0, 0], once)

        # The second product waits until the store has read the first one.
        acc = pl.matmul_mx_acc(acc, a_l0, as_l0, b_l0, bs_l0)
        twice = pl.store(acc, [0, 0], twice)
        return once, twice

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP4],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        once: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        twice: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Launch the kernel once."""
        once, twice = self.gemm(a, a_scale, b, b_scale, once, twice)
        return once, twice
