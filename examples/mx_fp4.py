"""A matmul of 4-bit floats, E2M1 on both sides.

    scalebox run examples/mx_fp4.py

E2M1 has the values 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives: without a scale for every 32 of
them it would be of little use. Two elements lie in a byte, but shapes and offsets count elements.
"""

from scalebox.ir import language as pl

M = pl.param("M", 64)  # a multiple of 16
K = pl.param("K", 512)  # a multiple of STEP
N = pl.param("N", 128)  # a multiple of 32
STEP = pl.param("STEP", 256)  # elements of K a trip: a multiple of 64

GROUP = 32  # elements that share a scale
GROUPS = K // GROUP
STEP_GROUPS = STEP // GROUP


@pl.program
class MxFp4:
    """The K loop of mx_matmul.py over 4-bit elements."""

    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP4],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP4],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Multiply, a step of K at a time."""
        pl.static_assert(K % STEP == 0, "K must be a multiple of STEP")

        a_l1 = pl.load(a, [0, 0], [M, STEP], target_memory=pl.Mem.Mat)
        as_l1 = pl.load(a_scale, [0, 0], [M, STEP_GROUPS], target_memory=pl.Mem.Mat)
        b_l1 = pl.load(b, [0, 0], [STEP, N], target_memory=pl.Mem.Mat)
        bs_l1 = pl.load(b_scale, [0, 0], [STEP_GROUPS, N], target_memory=pl.Mem.Mat)
        a_l0 = pl.move(a_l1, target_memory=pl.Mem.Left)
        as_l0 = pl.move(as_l1, target_memory=pl.Mem.LeftScale)
        b_l0 = pl.move(b_l1, target_memory=pl.Mem.Right)
        bs_l0 = pl.move(bs_l1, target_memory=pl.Mem.RightScale)
        acc = pl.matmul_mx(a_l0, as_l0, b_l0, bs_l0)

        for k in pl.pipeline(STEP, K, STEP, stage=2):
            g = k // GROUP
            a_next = pl.load(a, [0, k], [M, STEP], target_memory=pl.Mem.Mat)
            as_next = pl.load(a_scale, [0, g], [M, STEP_GROUPS], target_memory=pl.Mem.Mat)
            b_next = pl.load(b, [k, 0], [STEP, N], target_memory=pl.Mem.Mat)
            bs_next = pl.load(b_scale, [g, 0], [STEP_GROUPS, N], target_memory=pl.Mem.Mat)
            a_left = pl.move(a_next, target_memory=pl.Mem.Left)
            as_left = pl.move(as_next, target_memory=pl.Mem.LeftScale)
            b_right = pl.move(b_next, target_memory=pl.Mem.Right)
            bs_right = pl.move(bs_next, target_memory=pl.Mem.RightScale)
            acc = pl.matmul_mx_acc(acc, a_left, as_left, b_right, bs_right)

        c = pl.store(acc, [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP4],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP4],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Launch the kernel once."""
        c = self.gemm(a, a_scale, b, b_scale, c)
        return c
