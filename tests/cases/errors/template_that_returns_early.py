from scalebox.ir import language as pl


@pl.inline
def early(n):
    if n > 0:
        return n
    return 0


@pl.jit
def k(n: pl.Scalar[pl.INDEX]):
    m = early(n)
    return m
