"""All tiles of C in one kernel: two loops around a pipelined one, each tile stored in its trip."""

from scalebox.ir import language as pl

M = pl.param("M", 32)
N = pl.param("N", 64)
K = pl.param("K", 256)
STAGE = pl.param("STAGE", 2)
OUTER = pl.param("OUTER", 1)


@pl.program
class NestedLoops:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, N], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ):
        for i in pl.range(0, M, 16):
            for j in pl.pipeline(0, N, 32, stage=OUTER):
                acc = pl.matmul_mx(
                    pl.load(a, [i, 0], [16, 64]),
                    pl.load(sa, [i, 0], [16, 2]),
                    pl.load(b, [0, j], [64, 32]),
                    pl.load(sb, [0, j], [2, 32]),
                )
                for k in pl.pipeline(64, K, 64, stage=STAGE):
                    acc = pl.matmul_mx_acc(
                        acc,
                        pl.load(a, [i, k], [16, 64]),
                        pl.load(sa, [i, k // 32], [16, 2]),
                        pl.load(b, [k, j], [64, 32]),
                        pl.load(sb, [k // 32, j], [2, 32]),
                    )
                c = pl.store(acc, [i, j], c)
        return c
