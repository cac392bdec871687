"""Jumps, early returns and loops that go on while something holds, for the interpreter."""

from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    x = n * 2
    i = 0
    while x < 30:
        if i % 2 == 0:
            x = x + i
        else:
            t = i
            for j in pl.range(t):
                x = x + j
                t = t + 1
            x = x + t
        i = i + 1
    for j in pl.range(10):
        if j > n:
            break
        y = j * 2
        if y == 4:
            continue
    if n == 5:
        return x
    for j in pl.range(n):
        x = x + j
        if x > 40:
            return x * 1000
    return x * 100 + i
