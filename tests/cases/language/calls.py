from scalebox.ir import language as pl


@pl.function(type=pl.FunctionType.InCore)
def copy(x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    tile = pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
    return pl.store(tile, [0, 0], out)


@pl.program
class Calls:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        one: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        two: pl.InOut[pl.Tensor[[64, 64], pl.FP32]],
    ):
        fresh = pl.create_tensor([64, 64], dtype=pl.FP32)
        for i in pl.range(2):
            one, two = self.both(x, one, two, i * 16, 3)
        both = self.both(x, one, two, 0, 0)
        fresh = copy(both[0], fresh)
        self.effect(fresh)
        return self.both(both[1], one, two, 16, 16)

    @pl.function(type=pl.FunctionType.InCore)
    def both(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        one: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        two: pl.InOut[pl.Tensor[[64, 64], pl.FP32]],
        row: pl.Scalar[pl.INDEX],
        step: pl.Scalar[pl.INT32],
    ) -> tuple[pl.Tensor[[64, 64], pl.FP32], pl.Tensor[[64, 64], pl.FP32]]:
        tile: pl.Tile[[16, 64], pl.FP32] = pl.load(x, [row, 0], [16, 64], target_memory=pl.Mem.Vec)
        one = pl.store(tile, [row, 0], one)
        two = pl.store(tile, [row, 0], two)
        return one, two

    @pl.function(type=pl.FunctionType.InCore)
    def effect(self, x: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        pl.store(pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Vec), [48, 0], x)
