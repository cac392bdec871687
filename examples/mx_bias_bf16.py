"""A block-scaled matmul that starts from a bias and leaves as BF16.

    scalebox run examples/mx_bias_bf16.py

The bias is one row of FP32, added to every row of the result: it lies in a small buffer of its own
beside the accumulator. Sums are kept in FP32; the store rounds them to BF16 on their way out.
"""

from scalebox.ir import language as pl

M = pl.param("M", 64)  # a multiple of 16
N = pl.param("N", 128)  # a multiple of 32
K = pl.param("K", 1024)  # a multiple of STEP
STEP = pl.param("STEP", 256)  # elements of K a trip: a multiple of 64

GROUP = 32  # elements that share a scale
GROUPS = K // GROUP
STEP_GROUPS = STEP // GROUP


@pl.program
class MxBiasBf16:
    """The kernel of mx_matmul.py with a bias at its beginning and BF16 at its end."""

    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, N], pl.FP32],
        c: pl.Out[pl.Tensor[[M, N], pl.BF16]],
    ):
        """Multiply onto the bias, then round to BF16."""
        pl.static_assert(K % STEP == 0, "K must be a multiple of STEP")

        # Calls may be nested; each inner call makes a tile without a name.
        a_l0 = pl.move(pl.load(a, [0, 0], [M, STEP], target_memory=pl.Mem.Mat), pl.Mem.Left)
        as_l1 = pl.load(a_scale, [0, 0], [M, STEP_GROUPS], target_memory=pl.Mem.Mat)
        as_l0 = pl.move(as_l1, pl.Mem.LeftScale)
        b_l0 = pl.move(pl.load(b, [0, 0], [STEP, N], target_memory=pl.Mem.Mat), pl.Mem.Right)
        bs_l1 = pl.load(b_scale, [0, 0], [STEP_GROUPS, N], target_memory=pl.Mem.Mat)
        bs_l0 = pl.move(bs_l1, pl.Mem.RightScale)
        row = pl.move(pl.load(bias, [0, 0], [1, N], target_memory=pl.Mem.Mat), pl.Mem.Bias)
        acc = pl.matmul_mx_bias(a_l0, as_l0, b_l0, bs_l0, row)

        for k in pl.pipeline(STEP, K, STEP, stage=2):
            g = k // GROUP
            a_next = pl.load(a, [0, k], [M, STEP], target_memory=pl.Mem.Mat)
            as_next = pl.load(a_scale, [0, g], [M, STEP_GROUPS], target_memory=pl.Mem.Mat)
            b_next = pl.load(b, [k, 0], [STEP, N], target_memory=pl.Mem.Mat)
            bs_next = pl.load(b_scale, [g, 0], [STEP_GROUPS, N], target_memory=pl.Mem.Mat)
            a_left = pl.move(a_next, pl.Mem.Left)
            as_left = pl.move(as_next, pl.Mem.LeftScale)
            b_right = pl.move(b_next, pl.Mem.Right)
            bs_right = pl.move(bs_next, pl.Mem.RightScale)
            acc = pl.matmul_mx_acc(acc, a_left, as_left, b_right, bs_right)

        # The dtype of `c` decides what the store writes: FP32 sums become BF16.
        c = pl.store(acc, [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, N], pl.FP32],
        c: pl.Out[pl.Tensor[[M, N], pl.BF16]],
    ):
        """Launch the kernel once."""
        c = self.gemm(a, a_scale, b, b_scale, bias, c)
        return c
