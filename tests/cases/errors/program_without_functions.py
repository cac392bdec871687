from scalebox.ir import language as pl


@pl.program
class Case:
    def k(self, x: pl.Tensor[[64, 64], pl.FP32]):
        return x
