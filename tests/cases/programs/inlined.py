"""Functions of type Inline in a kernel and in what launches it: results, loops, swaps, and nested ones."""

from scalebox.ir import language as pl


@pl.program
class Inlined:
    @pl.function(type=pl.FunctionType.Inline)
    def scaled(self, t: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec], times: pl.Scalar[pl.INDEX]):
        u = pl.mul(t, 2.0)
        for i in pl.range(times):
            u = pl.add(u, t)
        return u

    @pl.function(type=pl.FunctionType.Inline)
    def both(self, t: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec], times: pl.Scalar[pl.INDEX]):
        times = times + 1
        return self.scaled(t, times), pl.neg(t)

    @pl.function(type=pl.FunctionType.Inline)
    def swapped(
        self, t: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec], u: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec]
    ):
        return u, t

    @pl.function(type=pl.FunctionType.Inline)
    def write(
        self,
        t: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec],
        row: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ):
        out = pl.store(t, [row, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[64, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        p: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ):
        for i in pl.range(4):
            x = pl.load(a, [16 * i, 0], [16, 32], target_memory=pl.Mem.Vec)
            y, z = self.both(x, i)
            y, z = self.swapped(y, z)
            o = self.write(y, 16 * i, o)
            p = pl.store(pl.add(z, self.scaled(y, 2)), [16 * i, 0], p)
        return o, p

    @pl.function(type=pl.FunctionType.Inline)
    def launch(
        self,
        a: pl.Tensor[[64, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        p: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ):
        o, p = self.kernel(a, o, p)
        return o, p

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[64, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        p: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ):
        o, p = self.launch(a, o, p)
        return o, p
