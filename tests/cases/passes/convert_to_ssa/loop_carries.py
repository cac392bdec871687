# `x` is rebound in the loop and used after it: it becomes an iteration argument that starts as the old
# `x`, a yield and a result. `y` is made anew in each trip and stays inside. `n` never changes.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    x = n * 2
    for i in pl.range(4):
        y = i + n
        x = x + y
    return x
