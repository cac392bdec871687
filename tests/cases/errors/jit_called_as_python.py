from scalebox.ir import language as pl


@pl.jit
def k(n: pl.Scalar[pl.INDEX]):
    return n


k(3)
