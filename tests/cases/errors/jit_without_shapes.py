from scalebox.ir import language as pl


@pl.jit
def k(a: pl.Tensor):
    return a
