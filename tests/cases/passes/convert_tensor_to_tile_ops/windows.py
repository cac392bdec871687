# A window is loaded where it is needed, from where it was cut.
from scalebox.ir import language as pl


@pl.program
class Windows:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[64, 256], pl.MXFP8_E4M3],
        b: pl.Tensor[[256, 32], pl.MXFP8_E4M3],
        out: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ):
        right = pl.slice(b, [128, 32], [64, 0])
        for m in pl.range(0, 64, 16):
            for k in pl.range(0, 128, 128):
                out = pl.assemble(out, pl.matmul(pl.slice(a, [16, 128], [m, k]), right), [m, 0])
        return out
