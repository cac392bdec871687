# The callee's offset is proved from the one call: a loop variable by steps of 16. Parameters and
# results are blocked in both functions.
from scalebox.ir import language as pl


@pl.program
class Calls:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, s: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ], row: pl.Scalar[pl.INDEX]):
        t = pl.load(s, [row, 0], [16, 2])

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, s: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ], n: pl.Scalar[pl.INDEX]
    ) -> pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ]:
        for i in pl.range(0, n, 16):
            self.k(s, i)
        return s
