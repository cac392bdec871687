# A region runs once for all that is around it: the versions of what it writes live on behind it, and a loop
# around it carries them. A TASK_ID that is bound again gets a version of its own.
from scalebox.ir import language as pl


@pl.program
class Regions:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        i = pl.tile.get_block_idx()
        t = pl.load(x, [i * 16, 0], [16, 64], target_memory=pl.Mem.Mat)
        out = pl.store(t, [i * 16, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        tid = None
        for k in pl.range(2):
            for i in pl.spmd(4):
                for j in pl.range(2):
                    t = pl.load(x, [i * 16, j * 32], [16, 32], target_memory=pl.Mem.Mat)
                    out = pl.store(t, [i * 16, j * 32], out)
            with pl.spmd(4, deps=[tid]) as tid:
                out = self.copy(x, out)
            with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]) as tid:
                t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
                if k > 0:
                    out = pl.store(t, [0, 0], out)
            out, tid = pl.submit(self.copy, x, out, deps=[tid])
        return out
