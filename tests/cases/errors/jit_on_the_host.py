from scalebox.ir import language as pl


@pl.jit.host
def k(n: pl.Scalar[pl.INDEX]):
    return n
