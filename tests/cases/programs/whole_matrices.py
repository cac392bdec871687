"""Whole matrices in L1 and one product: what is too large for L0, or slower at once, is cut."""

from scalebox.ir import language as pl

M = pl.param("M", 96)
K = pl.param("K", 256)
N = pl.param("N", 128)
VK = pl.param("VK", 256)
VN = pl.param("VN", 128)
GROUPS = K // 32


@pl.program
class WholeMatrices:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[M, K], pl.FP8E5M2],
        sa: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        sb: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, N], pl.FP32],
        c: pl.Out[pl.Tensor[[M + 16, N], pl.BF16]],
    ):
        left = pl.load(a, [0, 0], [M, K], [M, VK])
        p = pl.load(sa, [0, 0], [M, GROUPS])
        right = pl.load(b, [0, 0], [K, N], [VK, VN])
        q = pl.load(sb, [0, 0], [GROUPS, N])
        start = pl.load(bias, [0, 0], [1, N], [1, VN])
        acc = pl.matmul_mx_bias(left, p, right, q, start)
        c = pl.store(acc, [16, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E5M2],
        sa: pl.Tensor[[M, GROUPS], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        sb: pl.Tensor[[GROUPS, N], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, N], pl.FP32],
        c: pl.Out[pl.Tensor[[M + 16, N], pl.BF16]],
    ):
        c = self.kernel(a, sa, b, sb, bias, c)
        return c
