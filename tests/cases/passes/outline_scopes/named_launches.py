# A region that is named, or waits for another one, becomes a submit.
from scalebox.ir import language as pl


@pl.program
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[1, 32], pl.FP32],
        y: pl.Tensor[[1, 64], pl.FP32],
    ):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as one:
            t = pl.load(x, [0, 0], [1, 32], target_memory=pl.Mem.Mat)
        with pl.spmd(2, deps=[one], name_hint="second") as two:
            i = pl.tile.get_block_idx()
            u = pl.load(y, [0, i * 32], [1, 32], target_memory=pl.Mem.Mat)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[one, two], allow_early_resolve=True):
            v = pl.load(x, [0, 0], [1, 32], target_memory=pl.Mem.Mat)
