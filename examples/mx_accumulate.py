"""One product, then the same product added to it: two outputs from one accumulator.

    scalebox run examples/mx_accumulate.py

`base` is A x B and `accumulated` is twice that. Both pass through the same accumulator, so the second
matmul must wait until the first store has read it. The kernel does not say so: the compiler finds the
hazard and sets the event flags.
"""

from scalebox.ir import language as pl

M = pl.param("M", 64)  # a multiple of 16
K = pl.param("K", 128)  # a multiple of 64
N = pl.param("N", 128)  # a multiple of 32
GROUPS = K // 32  # one scale for 32 elements along K


@pl.program
class MxAccumulate:
    """A kernel with two results."""

    @pl.function(type=pl.FunctionType.InCore)
    def gemm_twice(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        base: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        accumulated: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Multiply, store, add the product again, store again."""
        a_l1 = pl.load(a, [0, 0], [M, K], target_memory=pl.Mem.Mat)
        as_l1 = pl.load(a_scale, [0, 0], [M, GROUPS], target_memory=pl.Mem.Mat)
        b_l1 = pl.load(b, [0, 0], [K, N], target_memory=pl.Mem.Mat)
        bs_l1 = pl.load(b_scale, [0, 0], [GROUPS, N], target_memory=pl.Mem.Mat)
        a_l0 = pl.move(a_l1, target_memory=pl.Mem.Left)
        as_l0 = pl.move(as_l1, target_memory=pl.Mem.LeftScale)
        b_l0 = pl.move(b_l1, target_memory=pl.Mem.Right)
        bs_l0 = pl.move(bs_l1, target_memory=pl.Mem.RightScale)

        product = pl.matmul_mx(a_l0, as_l0, b_l0, bs_l0)
        base = pl.store(product, [0, 0], base)
        doubled = pl.matmul_mx_acc(product, a_l0, as_l0, b_l0, bs_l0)
        accumulated = pl.store(doubled, [0, 0], accumulated)
        return base, accumulated

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        base: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        accumulated: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Launch the kernel once."""
        base, accumulated = self.gemm_twice(a, a_scale, b, b_scale, base, accumulated)
        return base, accumulated
