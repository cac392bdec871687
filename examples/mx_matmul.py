"""A block-scaled matmul, C = A x B, with its K loop double-buffered.

    scalebox run examples/mx_matmul.py
    scalebox run examples/mx_matmul.py --param K=2048

A and B hold 8-bit floats (E4M3). Every 32 elements along K share one scale, a power of two in one
byte (E8M0): that is OCP microscaling, "MX". The scales lie in memory as boxes of 16 rows by 2 groups,
in the order that the cube core wants them; MX_A_ZZ and MX_B_NN are the names of the two orders.

A kernel is parsed, never run by Python. It says, step by step, which tile goes where:

    global memory --load--> Mat (L1) --move--> Left, Right and their scale buffers --> the cube -->
    Acc --store--> global memory

Change a number below, or give it on the command line, and look at cycles and busy shares again.
"""

from scalebox.ir import language as pl

M = pl.param("M", 64)  # rows of A and C: a multiple of 16
N = pl.param("N", 128)  # columns of B and C: a multiple of 32
K = pl.param("K", 1024)  # columns of A, rows of B: a multiple of STEP
STEP = pl.param("STEP", 256)  # elements of K a trip: a multiple of 64

GROUP = 32  # elements that share a scale
GROUPS = K // GROUP  # scales along K
STEP_GROUPS = STEP // GROUP  # scales along K a trip


@pl.program
class MxMatmul:
    """One kernel, and the orchestration function that launches it."""

    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        """Multiply, a step of K at a time."""
        pl.static_assert(K % STEP == 0, "K must be a multiple of STEP")

        # The first step of K starts the accumulator.
        a_l1 = pl.load(a, [0, 0], [M, STEP], target_memory=pl.Mem.Mat)
        as_l1 = pl.load(a_scale, [0, 0], [M, STEP_GROUPS], target_memory=pl.Mem.Mat)
        b_l1 = pl.load(b, [0, 0], [STEP, N], target_memory=pl.Mem.Mat)
        bs_l1 = pl.load(b_scale, [0, 0], [STEP_GROUPS, N], target_memory=pl.Mem.Mat)
        a_l0 = pl.move(a_l1, target_memory=pl.Mem.Left)
        as_l0 = pl.move(as_l1, target_memory=pl.Mem.LeftScale)
        b_l0 = pl.move(b_l1, target_memory=pl.Mem.Right)
        bs_l0 = pl.move(bs_l1, target_memory=pl.Mem.RightScale)
        acc = pl.matmul_mx(a_l0, as_l0, b_l0, bs_l0)

        # The other steps add to it. stage=2 gives every tile two buffers, so that the loads of one
        # trip run while the cube still multiplies the tiles of the trip before.
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

        # store gives back the tensor with its new value.
        c = pl.store(acc, [0, 0], c)
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
