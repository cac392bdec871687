# A second assignment makes a second variable, and what follows uses it; the first keeps its name.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    x = n + 1
    x = x * x
    y = x
    x = y - x
    return x
