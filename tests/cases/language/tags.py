from scalebox.ir import language as pl


@pl.program
class Tags:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        out = pl.store(t, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        y = self.copy(x, out)
        pl.dump_tag(x)
        z = self.copy(x, y, attrs={"note": 1})
        with pl.spmd(4):
            w = self.copy(x, z)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
            w = pl.store(t, [16, 0], w)
        v, tid = pl.submit(self.copy, x, w, dumps=[w])
        return self.copy(v, v)
