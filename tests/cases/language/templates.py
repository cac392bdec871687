from scalebox.ir import language as pl


@pl.inline
def copy_rows(x, row, rows, out):
    """Copy some rows."""
    t = pl.load(x, [row, 0], [rows, x.shape[1]], target_memory=pl.Mem.Mat)
    out = pl.store(t, [row, 0], out)
    return out


@pl.inline
def swapped(a: pl.Scalar[pl.INDEX], b: pl.Scalar[pl.INDEX]):
    return b, a


@pl.program
class Templates:
    @pl.function(type=pl.FunctionType.InCore)
    def main(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        a: pl.Scalar[pl.INDEX],
        b: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        out = pl.store(t, [48, 0], out)
        for i in pl.range(2):
            out = copy_rows(x, i * 16, 16, out)
        copy_rows(x, 32, 16, out)
        a, b = swapped(a, b)
        c, d = swapped(b, a)
        return out, a, b, c, d
