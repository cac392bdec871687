# A grid that launches a kernel stays where it is; what launches it becomes an Orchestration.
from scalebox.ir import language as pl


@pl.program
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def row(self, x: pl.Tensor[[1, 64], pl.FP32]):
        i = pl.tile.get_block_idx()
        t = pl.load(x, [0, i * 32], [1, 32], target_memory=pl.Mem.Mat)

    @pl.function
    def main(self, x: pl.Tensor[[1, 64], pl.FP32]):
        with pl.spmd(2):
            self.row(x)
