from scalebox.ir import language as pl

K = 1024
HALF = 0.5


@pl.program
class Scalars:
    @pl.function
    def arithmetic(
        self, i: pl.Scalar[pl.INDEX], j: pl.Scalar[pl.INT32], x: pl.Scalar[pl.FP32], on: pl.Scalar[pl.BOOL]
    ):
        folded = K // 32 - 1
        quotient = (i + 16) // 16 % 4
        right_first = i - (i - 1)
        left_first = i - i - 1
        wider = i + j
        shifted = (i << 2) >> 1
        negative = -i * -3
        inverted = ~j
        small = pl.min(i, 4)
        large = pl.max(pl.min(i, K), 0)
        as_int = pl.cast(j, pl.INDEX) + i
        typed = j + pl.const(7, pl.INT32)
        kept = pl.const(7, pl.INT64) + pl.const(8, pl.INT64)
        ratio = x / HALF
        tiny = x * -0.0 + 1e-45
        unbounded = x + pl.const(float("inf"), pl.FP32)
        both = on and i < 4 and not (i == j or j != 0)
        either = on and (i >= 1 or i <= 2 or i > 3)
        always = True
        return folded, ratio, both
