"""A product that the same kernel reads again from global memory: a row of it is the next one's bias."""

from scalebox.ir import language as pl

M, K, N = 64, 128, 64
G = K // 32


@pl.program
class TensorReadAgain:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E5M2],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
        out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        first = pl.matmul_mx(a, a_scale, b, b_scale)
        row = pl.load(first, [3, 0], [1, N], target_memory=pl.Mem.Mat)
        a_tile = pl.load(a, [0, 0], [M, K], target_memory=pl.Mem.Mat)
        a_scale_tile = pl.load(a_scale, [0, 0], [M, G], target_memory=pl.Mem.Mat)
        b_tile = pl.load(b, [0, 0], [K, N], target_memory=pl.Mem.Mat)
        b_scale_tile = pl.load(b_scale, [0, 0], [G, N], target_memory=pl.Mem.Mat)
        second = pl.matmul_mx_bias(a_tile, a_scale_tile, b_tile, b_scale_tile, row)
        out = pl.store(second, [0, 0], out)
        return out
