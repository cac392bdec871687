# Two tensors are returned together; one that is read as well is InOut; a hint that is taken gets a number.
from scalebox.ir import language as pl


@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def sums(self, x: pl.Tensor[[1, 32], pl.FP32]):
        t = pl.load(x, [0, 0], [1, 32], target_memory=pl.Mem.Mat)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        d: pl.InOut[pl.Tensor[[16, 32], pl.FP32]],
    ):
        for i in pl.spmd(1, name_hint="sums"):
            z = pl.load(d, [0, 0], [1, 32])
            acc = pl.matmul_mx_bias(
                pl.load(a, [0, 0], [16, 64]),
                pl.load(sa, [0, 0], [16, 2]),
                pl.load(b, [0, 0], [64, 32]),
                pl.load(sb, [0, 0], [2, 32]),
                z,
            )
            c = pl.store(acc, [0, 0], c)
            d = pl.store(acc, [0, 0], d)
        return c, d
