"""A grid over blocks of rows, the last of which is not full; a place of the caller's goes along."""

from scalebox.ir import language as pl

M = pl.param("M", 40)
K = pl.param("K", 192)
N = 32
BLOCKS = (M + 15) // 16
FULL = M // 16
REST = max(1, M % 16)


@pl.program
class SpmdBlocks:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[16 * BLOCKS, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[16 * BLOCKS, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, 2 * N], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, 2 * N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, 2 * N], pl.FP32]],
    ):
        for half in pl.parallel(2):
            col = half * N
            for i in pl.spmd(BLOCKS, name_hint="block"):
                row = i * 16
                at = pl.load(a, [row, 0], [16, 64])
                acc = pl.matmul_mx(
                    at,
                    pl.load(sa, [row, 0], [16, 2]),
                    pl.load(b, [0, col], [64, N]),
                    pl.load(sb, [0, col], [2, N]),
                )
                for k in pl.pipeline(64, K, 64, stage=2):
                    g = k // 32
                    acc = pl.matmul_mx_acc(
                        acc,
                        pl.load(a, [row, k], [16, 64]),
                        pl.load(sa, [row, g], [16, 2]),
                        pl.load(b, [k, col], [64, N]),
                        pl.load(sb, [g, col], [2, N]),
                    )
                if i < FULL:
                    c = pl.store(acc, [row, col], c)
                else:
                    last = pl.matmul_mx(
                        pl.load(a, [row, 0], [16, 64], [REST, 64]),
                        pl.load(sa, [row, 0], [16, 2], [REST, 2]),
                        pl.load(b, [0, col], [64, N]),
                        pl.load(sb, [0, col], [2, N]),
                    )
                    c = pl.store(last, [row, col], c)
        return c
