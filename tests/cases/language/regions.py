from scalebox.ir import language as pl


@pl.program
class Regions:
    @pl.function(type=pl.FunctionType.InCore)
    def block(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        row = pl.get_block_idx() * (64 // pl.get_block_num())
        t = pl.load(x, [row, 0], [16, 64], target_memory=pl.Mem.Mat)
        out = pl.store(t, [row, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def two(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        p: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        q: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        t = pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        p = pl.store(t, [0, 0], p)
        q = pl.store(t, [0, 0], q)
        return p, q

    @pl.function
    def main(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        a: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        b: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        c: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        # One kernel call a block.
        with pl.spmd(4):
            a = self.block(x, a)
        with pl.spmd(n, sync_start=True, name_hint="again") as first:
            y = pl.tensor.view(a, [64, 64])
            p, q = self.two(y, b, c)
        # What a block does, written where it is launched.
        for i in pl.spmd(n + 1, name_hint="rows"):
            for j in pl.range(2):
                t = pl.load(p, [i * 16, j * 32], [16, 32], target_memory=pl.Mem.Mat)
                q = pl.store(t, [i * 16, j * 32], q)
        with pl.spmd(4, deps=[first, None], allow_early_resolve=True) as second:
            row = pl.tile.get_block_idx() * 16 + pl.tile.get_subblock_idx()
            t = pl.load(q, [row, 0], [16, 64], target_memory=pl.Mem.Mat)
            q = pl.store(t, [row, 0], q)
        # What one core does.
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="last", deps=[second], dumps=[a]) as third:
            t = pl.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
            if n > 2:
                q = pl.store(t, [0, 0], q)
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=None, deps=[third]):
            t = pl.load(q, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
            q = pl.store(t, [16, 0], q)
        return a, p, q
