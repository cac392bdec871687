# Row-major for ND, also of three dimensions; the last two swapped for DN; over five dimensions for boxes.
# A tensor that says its strides keeps them.
from scalebox.ir import language as pl


@pl.program
class Layouts:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        nd: pl.Tensor[[4, 8, 16], pl.FP32],
        strided: pl.Tensor[[16, 64], pl.FP32, pl.TensorView(stride=[128, 1], layout=pl.TensorLayout.ND)],
        dn: pl.Tensor[[128, 32], pl.FP8E4M3FN, pl.TensorView(stride=[], layout=pl.TensorLayout.DN)],
        sa: pl.Tensor[[128, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        sb: pl.Tensor[[2, 64], pl.FP8E8M0, pl.MX_B_NN],
    ):
        t = pl.load(sa, [16, 0], [16, 2])

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, flat: pl.Tensor[[1, 64], pl.FP8E8M0]) -> pl.Tensor[[32, 2], pl.FP8E8M0, pl.MX_A_ZZ]:
        boxes = pl.tensor.view(flat, [32, 2], layout=pl.MX_A_ZZ)
        return boxes
