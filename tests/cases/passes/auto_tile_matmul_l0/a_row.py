# A row takes the room of 16 near the cube; it is cut along K like a matrix.
from scalebox.ir import language as pl


@pl.program
class k:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[1, 1100], pl.BF16],
        b: pl.Tensor[[1100, 64], pl.BF16],
        c: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    ):
        x = pl.gemv(
            pl.load(a, [0, 0], [1, 1104], [1, 1100]), pl.load(b, [0, 0], [1104, 64], [1100, 64])
        )
        c = pl.store(x, [0, 0], c)
        return c
