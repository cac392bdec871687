from scalebox.ir import language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, t: pl.Tile[[64, 128], pl.MXFP8_E4M3, pl.Mem.Mat]):
        pass
