# Offsets count boxes: rows by 16, columns by 32 bytes of elements. The stamp stands on every function.
from scalebox.ir import language as pl


@pl.program
class LoopOffsets:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[256, 512], pl.INT8, pl.NZ],
        y: pl.Tensor[[32, 64], pl.BF16, pl.NZ],
        k: pl.Scalar[pl.INDEX],
    ):
        for r in pl.range(0, 256, 64):
            t = pl.load(x, [r, k], [64, 128])
        u = pl.load(y, [16, 32], [16, 32], target_memory=pl.Mem.Mat)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[256, 512], pl.INT8, pl.NZ], y: pl.Tensor[[32, 64], pl.BF16, pl.NZ]
    ):
        self.kernel(x, y, 128)
        for i in pl.range(3):
            self.kernel(x, y, i * 128)
