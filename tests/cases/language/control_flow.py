from scalebox.ir import language as pl


@pl.program
class ControlFlow:
    @pl.function
    def names_leak(self, n: pl.Scalar[pl.INDEX]):
        total = 0
        for i in pl.range(n):
            for j in pl.range(1, n):
                total = total + i * j
            for j in pl.range(0, n, 2):
                total = total - j
        if total > 4:
            big = 1
        elif total == 4:
            big = 2
        else:
            big = 3
        while total < 100:
            total = total * 2
            if total == 64:
                break
            continue
        return total + big

    @pl.function
    def values_are_yielded(self, n: pl.Scalar[pl.INDEX]):
        for i, (a, b) in pl.range(n, init_values=(0, 1), attrs={"note": "fibonacci"}):
            if a < b:
                smaller = pl.yield_(a)
            else:
                smaller = pl.yield_(b)
            first, second = pl.yield_(b, a + b + smaller * 0)
        for (x,) in pl.while_(init_values=(second,)):
            pl.cond(x > 1)
            halved = pl.yield_(x // 2)
        if first > halved:
            p, q = pl.yield_(first, halved)
        else:
            p, q = pl.yield_(halved, first)
        return p, q

    @pl.function
    def nothing_happens(self):
        if True:
            pass
        else:
            pass
        return
