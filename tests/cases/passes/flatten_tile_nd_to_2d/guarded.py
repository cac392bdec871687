# Nobody knows that row stays within its matrix: a term that is 0 there makes any other row leave the
# view, so that it cannot fall into the next batch unseen. The first axis needs none.
from scalebox.ir import language as pl


@pl.program
class Guarded:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[4, 64, 128], pl.FP8E4M3FN],
        batch: pl.Scalar[pl.INDEX],
        row: pl.Scalar[pl.INDEX],
    ):
        first = pl.load(x, [batch, row, 0], [1, 16, 128], target_memory=pl.Mem.Mat)
        whole = pl.load(x, [batch, 0, 64], [2, 64, 64], target_memory=pl.Mem.Mat)
        part = pl.load(x, [1, 48, 0], [1, 64, 128], [1, 16, 128], target_memory=pl.Mem.Mat)
