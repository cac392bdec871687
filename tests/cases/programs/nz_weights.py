"""Weights in NZ: of rank 4, a matrix by a scalar that is handed on, boxes by the K loop."""

from scalebox.ir import language as pl

STAGE = pl.param("STAGE", 2)
M, K, N = 32, 256, 64


@pl.program
class NzWeights:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN, pl.NZ],
        sa: pl.Tensor[[M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        w: pl.Tensor[[2, 3, K, 2 * N], pl.FP8E4M3FN, pl.NZ],
        sw: pl.Tensor[[K // 32, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        which: pl.Scalar[pl.INDEX],
    ):
        acc = pl.matmul_mx(
            pl.load(a, [0, 0], [M, 64]),
            pl.load(sa, [0, 0], [M, 2]),
            pl.load(w, [1, which, 0, N], [1, 1, 64, N]),
            pl.load(sw, [0, 0], [2, N]),
        )
        for k in pl.pipeline(64, K, 64, stage=STAGE):
            acc = pl.matmul_mx_acc(
                acc,
                pl.load(a, [0, k], [M, 64]),
                pl.load(sa, [0, k // 32], [M, 2]),
                pl.load(w, [1, which, k, N], [1, 1, 64, N]),
                pl.load(sw, [k // 32, 0], [2, N]),
            )
        c = pl.store(acc, [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN, pl.NZ],
        sa: pl.Tensor[[M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        w: pl.Tensor[[2, 3, K, 2 * N], pl.FP8E4M3FN, pl.NZ],
        sw: pl.Tensor[[K // 32, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        c = self.k(a, sa, w, sw, c, 2)
        return c
