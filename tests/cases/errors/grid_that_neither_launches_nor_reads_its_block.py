from scalebox.ir import language as pl


@pl.program
class Case:
    @pl.function
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        with pl.spmd(4):
            t = pl.load(x, [0, 0], [16, 64])
