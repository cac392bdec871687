from scalebox.ir import language as pl


@pl.program
class Submits:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        row: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        t = pl.load(x, [row, 0], [16, 64], target_memory=pl.Mem.Mat)
        out = pl.store(t, [row, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def two(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        p: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        q: pl.Out[pl.Tensor[[64, 64], pl.BF16]],
    ):
        return p, q

    @pl.function(type=pl.FunctionType.InCore)
    def nothing(self, x: pl.Tensor[[64, 64], pl.FP32]):
        pass

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        prev = None
        for i in pl.range(n):
            out, prev = pl.submit(self.copy, x, i * 16, out, deps=[prev, None])
        for i, (last,) in pl.parallel(4, init_values=(prev,)):
            out, tid = pl.submit(self.copy, x, i * 16, out)
            last_one = pl.yield_(tid)
        (p, q), both = pl.submit(self.two, out, deps=[last_one], dumps=[out])
        (tid,) = pl.submit(self.nothing, p, allow_early_resolve=True)
        done = pl.system.task_dummy([both, tid])
        whole = pl.spmd_submit(self.two, x, p, core_num=n, sync_start=True, deps=[done])
        r = whole[0]
        s, last = pl.submit(self.copy, r, 0, deps=[whole[2]], predicate=(n > 2))
        pl.submit(self.nothing, s, deps=[last])
        return out, s
