# What is inside an arm, or behind a return, moves out no further than before its own statement.
from scalebox.ir import language as pl


@pl.program
class Arms:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(
        self, a: pl.Tensor[[16, 64], pl.FP32], c: pl.Out[pl.Tensor[[16, 64], pl.FP32]], n: pl.Scalar[pl.INDEX]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        if n > 0:
            c = pl.store(pl.load(a, [0, 0], [16, 64]), [0, 0], c)
        else:
            c = pl.store(pl.load(a, [0, 0], [8, 64]), [0, 0], c)
        return pl.store(pl.load(a, [0, 0], [8, 64]), [8, 0], c)
