from scalebox.ir import language as pl


@pl.jit.incore
def k(n: pl.Scalar[pl.INDEX]):
    return n
