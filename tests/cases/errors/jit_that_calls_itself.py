from scalebox.ir import language as pl


@pl.jit.opaque
def there(n: pl.INDEX) -> pl.Scalar[pl.INDEX]:
    return back(n)


@pl.jit.opaque
def back(n: pl.INDEX) -> pl.Scalar[pl.INDEX]:
    return there(n)


@pl.jit
def main(n: pl.Scalar[pl.INDEX]):
    return there(n)
