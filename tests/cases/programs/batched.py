"""Products of rank 3, one matrix after the other, cut along M; the last rows of each are valid in part."""

from scalebox.ir import language as pl

B = pl.param("B", 3)
VM = pl.param("VM", 32)
M, K, N = 64, 128, 64


@pl.program
class Batched:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[B, M, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[B * M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[B, K, N], pl.FP8E5M2],
        sb: pl.Tensor[[K // 32, B * N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[B, M, N], pl.FP32]],
    ):
        for i in pl.range(B):
            y = pl.load(b, [i, 0, 0], [1, K, N], target_memory=pl.Mem.Mat)
            q = pl.load(sb, [0, i * N], [K // 32, N])
            for m in pl.pipeline(0, M, 32, stage=2):
                x = pl.load(a, [i, m, 0], [1, 32, K], [1, VM, K])
                p = pl.load(sa, [i * M + m, 0], [32, K // 32])
                c = pl.store(pl.matmul_mx(x, p, y, q), [i, m, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[B, M, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[B * M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[B, K, N], pl.FP8E5M2],
        sb: pl.Tensor[[K // 32, B * N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[B, M, N], pl.FP32]],
    ):
        c = self.k(a, sa, b, sb, c)
        return c
