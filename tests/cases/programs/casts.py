"""Casts of every length of chain, of whole and partial tiles of rank 3, in and out of Vec."""

from scalebox.ir import language as pl


@pl.program
class Casts:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[4, 16, 64], pl.FP4],
        b: pl.Tensor[[4, 16, 64], pl.FP32],
        c: pl.Out[pl.Tensor[[4, 16, 64], pl.FP8E4M3FN]],
        d: pl.Out[pl.Tensor[[4, 16, 64], pl.INT8]],
        e: pl.Out[pl.Tensor[[4, 16, 64], pl.FP4]],
        f: pl.Out[pl.Tensor[[4, 16, 64], pl.BF16]],
    ):
        for i in pl.range(2):
            x = pl.load(a, [2 * i, 0, 0], [2, 16, 64], target_memory=pl.Mem.Vec)
            y = pl.load(b, [2 * i, 0, 0], [2, 16, 64], [1, 10, 64])
            c = pl.store(pl.cast(x, pl.FP8E4M3FN), [2 * i, 0, 0], c)
            d = pl.store(pl.cast(y, pl.INT8, mode="rint"), [2 * i, 0, 0], d)
            e = pl.store(pl.cast(y, pl.FP4, mode="ceil"), [2 * i, 0, 0], e)
            f = pl.store(pl.cast(y, pl.BF16), [2 * i, 0, 0], f)
        return c, d, e, f
