from scalebox.ir import language as pl


@pl.inline
def next_one(n):
    return n + 1


@pl.jit
def k(n: pl.Scalar[pl.INDEX]):
    m = next_one(n, 2)
    return m
