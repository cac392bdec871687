# A grid holds one call and nothing else: what the call is made of moves out before the grid. In a region that
# says what a core does, it moves out as everywhere, but not out of the region.
from scalebox.ir import language as pl


@pl.program
class Grids:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        out = pl.store(pl.load(x, [pl.tile.get_block_idx() * 16, 0], [16, 64]), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.spmd(4):
            out = self.copy(pl.tensor.view(x, [64, 64]), out)
        with pl.spmd(4):
            out = pl.store(pl.load(x, [pl.tile.get_block_idx() * 16, 0], [16, 64]), [0, 0], out)
        y, tid = pl.submit(self.copy, pl.tensor.view(out, [64, 64]))
        return out
