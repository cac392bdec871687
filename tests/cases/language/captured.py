import scalebox
from scalebox.ir.language import Mem, load, matmul_mx, move, store


class Sizes:
    M, K, N = 32, 64, 64
    steps = [16, 32]


pypto = scalebox.pl
E4M3 = pypto.FP8E4M3FN
LAYOUTS = {"a": pypto.MX_A_ZZ, "b": pypto.MX_B_NN}
TARGET = Mem.Mat
ORIGIN = (0, 0)


def build(sizes, rows):
    @pypto.program
    class Captured:
        @pypto.function(type=pypto.FunctionType.InCore)
        def kernel(
            self,
            a: pypto.Tensor[[rows, sizes.K], E4M3],
            sa: pypto.Tensor[[rows, sizes.K // 32], pypto.FP8E8M0, LAYOUTS["a"]],
            b: pypto.Tensor[[sizes.K, sizes.N], E4M3],
            sb: pypto.Tensor[[sizes.K // 32, sizes.N], pypto.FP8E8M0, LAYOUTS["b"]],
            c: pypto.Out[pypto.Tensor[[rows, sizes.N], pypto.FP32]],
        ):
            left = move(load(a, ORIGIN, [rows, sizes.K], target_memory=TARGET), Mem.Left)
            scale = move(load(sa, ORIGIN, [rows, sizes.K // 32]), Mem.LeftScale)
            right = move(load(b, ORIGIN, [sizes.K, sizes.N], None, TARGET), Mem.Right)
            other = move(load(sb, ORIGIN, (2, sizes.N)), Mem.RightScale)
            base = sizes.steps[1] - sizes.steps[0] - 16
            return store(matmul_mx(left, scale, right, other), [base, 0], c)

    return Captured


program = build(Sizes, 16)
