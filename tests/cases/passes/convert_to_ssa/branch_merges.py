# What the arms leave behind is yielded by both: `x` from each arm; `y`, which only one arm changes, as it
# was from the other; `z`, which each arm makes, under one name. `w` is used by nobody afterwards.
from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    x = n
    y = n + 1
    if n > 3:
        x = x + 1
        z = x
    else:
        w = x + 2
        x = w * w
        y = y + x
        z = y
    return x + y + z
