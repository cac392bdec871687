# Boxes in NZ are packed row-major over their five axes: a column of boxes lies in one piece.
from scalebox.ir import language as pl


@pl.program
class Boxes:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[2, 64, 128], pl.FP8E4M3FN, pl.NZ],
        y: pl.Tensor[[32, 64], pl.BF16, pl.NZ],
    ):
        t = pl.load(x, [1, 16, 32], [1, 32, 64])
        u = pl.load(y, [0, 16], [32, 16])
