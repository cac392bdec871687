# Axes before the matrix are folded into one. A window of one matrix, of several that follow one another,
# and one of which only the run knows that the inner offset stays within its axis.
from scalebox.ir import language as pl


@pl.program
class LeadingAxes:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        weights: pl.Tensor[[32, 2048, 4096], pl.INT8, pl.NZ],
        x: pl.Tensor[[4, 8, 32, 64], pl.FP8E4M3FN, pl.NZ],
        n: pl.Scalar[pl.INDEX],
    ):
        one = pl.load(weights, [1, 256, 512], [1, 256, 512])
        for i in pl.range(4):
            for j in pl.range(8):
                each = pl.load(x, [i, j, 0, 32], [1, 1, 32, 32])
            several = pl.load(x, [i, 0, 0, 0], [1, 8, 32, 64])
            unknown = pl.load(x, [i, n, 16, 0], [1, 1, 16, 64])

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        weights: pl.Tensor[[32, 2048, 4096], pl.INT8, pl.NZ],
        x: pl.Tensor[[4, 8, 32, 64], pl.FP8E4M3FN, pl.NZ],
    ):
        self.kernel(weights, x, 7)
