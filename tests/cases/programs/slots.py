"""Double buffering by hand: tiles go round the slots of a buffer, and two lie in slots of their own."""

from scalebox.ir import language as pl

TRIPS = pl.param("TRIPS", 4)

buf = pl.MemRef(slots=2)
other = pl.MemRef("other", slots=2)


@pl.program
class Slots:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[16, 64 * TRIPS], pl.FP16],
        b: pl.Tensor[[64 * TRIPS, 32], pl.FP16],
        o: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        x0: pl.Tile[[16, 16], pl.FP16, pl.Mem.Mat, other[0]] = pl.load(
            a, [0, 0], [16, 16], target_memory=pl.Mem.Mat
        )
        y0: pl.Tile[[16, 32], pl.FP16, pl.Mem.Mat, other[1]] = pl.load(
            b, [0, 0], [16, 32], target_memory=pl.Mem.Mat
        )
        acc = pl.matmul(x0, y0)
        for i in pl.range(TRIPS):
            x: pl.Tile[[16, 64], pl.FP16, pl.Mem.Mat, buf[i % 2]] = pl.load(
                a, [0, 64 * i], [16, 64], target_memory=pl.Mem.Mat
            )
            y: pl.Tile[[64, 32], pl.FP16, pl.Mem.Mat, other[(i + 1) % 2]] = pl.load(
                b, [64 * i, 0], [64, 32], target_memory=pl.Mem.Mat
            )
            acc = pl.matmul_acc(acc, x, y)
        o = pl.store(acc, [0, 0], o)
        return o
