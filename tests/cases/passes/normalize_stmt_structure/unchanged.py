# The parser makes flat bodies, a statement alone or a sequence of several: nothing changes.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    x = n
    for i in pl.range(4):
        if i > 2:
            x = x + i
    return x
