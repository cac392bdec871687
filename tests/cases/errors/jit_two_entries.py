from scalebox.ir import language as pl


@pl.jit
def one(n: pl.Scalar[pl.INDEX]):
    return n


@pl.jit
def two(n: pl.Scalar[pl.INDEX]):
    return n
