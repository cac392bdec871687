# A product is assembled into an output by a store; nothing is added to the parameters.
from scalebox.ir import language as pl

M, K, N = 64, 128, 32
G = K // 32


@pl.program
class Assembled:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
        wide: pl.Out[pl.Tensor[[M, 2 * N], pl.BF16]],
    ):
        product = pl.matmul_mx(a, a_scale, b, b_scale)
        wide = pl.assemble(wide, product, [0, N])
        wide = pl.assemble(wide, product, [0, 0])
        return wide
