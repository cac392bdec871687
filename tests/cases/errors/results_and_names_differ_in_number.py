from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        out = pl.store(pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec), [0, 0], out)
        return out, x

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, y: pl.Tensor[[64, 64], pl.FP32], z: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        z, p, q = self.k(y, z)
