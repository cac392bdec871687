# Loads into Mat, or not yet placed, go through a view in two dimensions, one a sequence; their rows are
# counted through all batches. A store keeps its tensor and says the window that its tile stands for.
from scalebox.ir import language as pl

B, M, K, N = 3, 64, 128, 64


@pl.program
class Batched:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[B, M, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[B * M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[B, K, N], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, B * N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[B, M, N], pl.FP32]],
    ):
        for i in pl.range(B):
            y = pl.load(b, [i, 0, 0], [1, K, N], target_memory=pl.Mem.Mat)
            q = pl.load(sb, [0, i * N], [K // 32, N])
            for m in pl.range(0, M, 32):
                x = pl.load(a, [i, m, 0], [1, 32, K])
                p = pl.load(sa, [i * M + m, 0], [32, K // 32])
                c = pl.store(pl.matmul_mx(x, p, y, q), [i, m, 0], c)
        return c
