"""Products of whole tensors: returned, added to, assembled, and handed on by the caller."""

from scalebox.ir import language as pl

M, K, N = 64, 128, 64
G = K // 32


@pl.program
class TensorProducts:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E5M2],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, N], pl.FP32],
        wide: pl.Out[pl.Tensor[[M, 2 * N], pl.BF16]],
        n: pl.Scalar[pl.INDEX],
    ):
        if n > 1:
            c = pl.matmul_mx(a, a_scale, b, b_scale)
        else:
            c = pl.matmul_mx_bias(a, a_scale, b, b_scale, bias)
        wide = pl.assemble(wide, c, [0, N])
        for i in pl.range(n):
            c = pl.matmul_mx_acc(c, a, a_scale, b, b_scale)
        pl.assemble(wide, c, [0, 0])
        return c, wide, pl.matmul_mx(a, a_scale, b, b_scale)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E5M2],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, N], pl.FP32],
        wide: pl.Out[pl.Tensor[[M, 2 * N], pl.BF16]],
        n: pl.Scalar[pl.INDEX],
    ):
        total, wide, product = self.gemm(a, a_scale, b, b_scale, bias, wide, n)
        return product, total, wide
