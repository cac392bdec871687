# A rounding that has a direction is the same in every step; integers are reached once and then only
# bounded; what is loaded without a memory goes where the vector core works.
from scalebox.ir import language as pl


@pl.program
class Directed:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[16, 64], pl.FP32],
        b: pl.Out[pl.Tensor[[16, 64], pl.FP4]],
        c: pl.Out[pl.Tensor[[16, 64], pl.UINT8]],
    ):
        for i in pl.range(2):
            t = pl.load(a, [i * 8, 0], [8, 64])
            b = pl.store(pl.cast(t, pl.FP4, mode="floor"), [i * 8, 0], b)
            c = pl.store(pl.cast(t, pl.UINT8, 4), [i * 8, 0], c)
        return b, c
