# A product that is read again from global memory is stored into a tensor that is no output.
from scalebox.ir import language as pl

M, K, N = 64, 128, 32
G = K // 32


@pl.program
class ReadAgain:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
        out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        first = pl.matmul_mx(a, a_scale, b, b_scale)
        row = pl.load(first, [0, 0], [1, N], target_memory=pl.Mem.Mat)
        second = pl.matmul_mx_bias(
            pl.load(a, [0, 0], [M, K], target_memory=pl.Mem.Mat),
            pl.load(a_scale, [0, 0], [M, G], target_memory=pl.Mem.Mat),
            pl.load(b, [0, 0], [K, N], target_memory=pl.Mem.Mat),
            pl.load(b_scale, [0, 0], [G, N], target_memory=pl.Mem.Mat),
            row,
        )
        out = pl.store(second, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
        out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        out = self.gemm(a, a_scale, b, b_scale, out)
        return out
