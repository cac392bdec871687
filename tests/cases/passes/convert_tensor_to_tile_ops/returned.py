# A product that is returned is stored into an output of its name; who calls the kernel makes the tensor.
# One without a name is `out`.
from scalebox.ir import language as pl

M, K, N = 64, 128, 32
G = K // 32


@pl.program
class Returned:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
    ):
        c = pl.matmul_mx(a, a_scale, b, b_scale)
        return c, pl.matmul_mx(a, a_scale, b, b_scale)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
    ):
        first, second = self.gemm(a, a_scale, b, b_scale)
        return first, second
