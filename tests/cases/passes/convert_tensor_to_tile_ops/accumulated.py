# A product that goes on into a sum stays in the accumulator, through a branch and a loop.
from scalebox.ir import language as pl

M, K, N = 64, 128, 32
G = K // 32


@pl.program
class Accumulated:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
        bias: pl.Tensor[[1, N], pl.FP32],
        n: pl.Scalar[pl.INDEX],
    ):
        if n > 0:
            c = pl.matmul_mx(a, a_scale, b, b_scale)
        else:
            c = pl.matmul_mx_bias(a, a_scale, b, b_scale, bias)
        for i in pl.range(n):
            c = pl.matmul_mx_acc(c, a, a_scale, b, b_scale)
        return c
