from scalebox.ir import language as pl


@pl.program
class Loops:
    @pl.function
    def kinds(self, n: pl.Scalar[pl.INDEX]):
        total = 0
        for i in pl.parallel(n):
            total = total + i
        for i, (s,) in pl.parallel(2, n, 2, init_values=(total,), attrs={"note": 1}):
            total = pl.yield_(s + i)
        for i in pl.unroll(4):
            total = total + i
        for i in pl.unroll(8, 0, -2):
            for j in pl.range(n):
                total = total + j * i
        for i, (s,) in pl.pipeline(n, stage=2, init_values=(total,)):
            total = pl.yield_(s * 2)
        return total

    @pl.function
    def jumps(self, n: pl.Scalar[pl.INDEX]):
        for i in pl.parallel(n):
            for j in pl.range(n):
                if j > i:
                    break
        while n > 0:
            for i in pl.unroll(2):
                pass
            continue
        return n
