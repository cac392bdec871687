# Nothing is assigned twice, and the loop says itself what it carries: nothing changes.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    x0 = n * 2
    for i, (x,) in pl.range(4, init_values=(x0,)):
        y = x + i
        x1 = pl.yield_(y)
    return x1
