# A tensor that is only written keeps its name; then all do, and the function returns nothing.
from scalebox.ir import language as pl


@pl.program
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        d: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="both"):
            acc = pl.matmul_mx(
                pl.load(a, [0, 0], [16, 64]),
                pl.load(sa, [0, 0], [16, 2]),
                pl.load(b, [0, 0], [64, 32]),
                pl.load(sb, [0, 0], [2, 32]),
            )
            pl.store(acc, [0, 0], c)
            d = pl.store(acc, [0, 0], d)
        return c, d
