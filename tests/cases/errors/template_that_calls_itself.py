from scalebox.ir import language as pl


@pl.inline
def again(n):
    m = again(n)
    return m


@pl.jit
def k(n: pl.Scalar[pl.INDEX]):
    m = again(n)
    return m
