# `last` is not used after the loop, but each trip uses what the trip before left: it is carried too.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    total = 0
    last = n
    for i in pl.range(0, 8, 2):
        total = total + last
        last = i
    return total
