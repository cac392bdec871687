"""The product leaves before it is accumulated further: the sum must wait until the store has read it."""

from scalebox.ir import language as pl

M = pl.param("M", 64)
N = pl.param("N", 128)
K = pl.param("K", 128)


@pl.program
class TwoOutputs:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, N], pl.FP8E8M0, pl.MX_B_NN],
        base: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        twice: pl.Out[pl.Tensor[[M, N], pl.FP16]],
    ):
        at = pl.move(pl.load(a, [0, 0], [M, K], target_memory=pl.Mem.Mat), pl.Mem.Left)
        st = pl.move(pl.load(sa, [0, 0], [M, K // 32]), pl.Mem.LeftScale)
        bt = pl.move(pl.load(b, [0, 0], [K, N], target_memory=pl.Mem.Mat), pl.Mem.Right)
        tt = pl.move(pl.load(sb, [0, 0], [K // 32, N]), pl.Mem.RightScale)
        acc = pl.matmul_mx(at, st, bt, tt)
        base = pl.store(acc, [0, 0], base)
        acc = pl.matmul_mx_acc(acc, at, st, bt, tt)
        twice = pl.store(acc, [0, 0], twice)
        return base, twice

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP8E4M3FN],
        sa: pl.Tensor[[M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.FP8E4M3FN],
        sb: pl.Tensor[[K // 32, N], pl.FP8E8M0, pl.MX_B_NN],
        base: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        twice: pl.Out[pl.Tensor[[M, N], pl.FP16]],
    ):
        base, twice = self.k(a, sa, b, sb, base, twice)
        return base, twice
