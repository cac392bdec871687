# Tiles of two axes stay as they are. A load into Vec keeps its tensor and its window, also one of pieces;
# a load from NZ keeps them too. What is valid of a tile in part is stored as that part.
from scalebox.ir import language as pl


@pl.program
class Kept:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[4, 64, 128], pl.FP32],
        z: pl.Tensor[[4, 64, 128], pl.FP8E4M3FN, pl.NZ],
        y: pl.Out[pl.Tensor[[4, 64, 128], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
        flat = pl.load(pl.tensor.view(x, [256, 128]), [n, 0], [16, 128], target_memory=pl.Mem.Vec)
        pieces = pl.load(x, [0, 0, 0], [2, 16, 128], target_memory=pl.Mem.Vec)
        y = pl.store(pieces, [2, 16, 0], y)
        part = pl.load(x, [3, 0, 0], [1, 32, 128], [1, 20, 128], target_memory=pl.Mem.Vec)
        y = pl.store(part, [3, 40, 0], y)
        half = pl.cast(pieces, pl.BF16)
        boxes = pl.load(z, [n * n, 16, 32], [1, 32, 64], target_memory=pl.Mem.Mat)
        return y
