"""Random kernels for the cube: loads, moves, sums and stores under few names, in loops and branches."""

from collections.abc import Sequence

from hypothesis import strategies as st

from scalebox.ir import language as pl
from scalebox.ir.core import Program

_HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[16, 512], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 16], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[512, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[16, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
"""
#: Operand -> its tensor and window, the memory that a kernel may place it in.
_OPERANDS = {
    "l": ("a, [0, {k}], [16, 64]", "Left"),
    "r": ("b, [{k}, 0], [64, 32]", "Right"),
    "p": ("sa, [0, {g}], [16, 2]", "LeftScale"),
    "q": ("sb, [{g}, 0], [2, 32]", "RightScale"),
}
_BITS = st.integers(0, 1)


def parsed(lines: Sequence[str]) -> Program:
    body = "\n".join(f"        {line}" for line in lines)
    made = pl.parse(f"{_HEAD}{body}\n")
    assert isinstance(made, Program)
    return made


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


class Drawing:
    """Draws one kernel; `placed` says that it moves its tiles itself."""

    def __init__(self, draw: st.DrawFn, *, placed: bool) -> None:
        self._draw = draw
        self._placed = placed
        self._loops = 0

    def load(self, operand: str, number: int, loops: Sequence[str]) -> str:
        window, memory = _OPERANDS[operand]
        at = self._draw(st.sampled_from([*loops, *(str(64 * i) for i in range(8))]))
        groups = str(int(at) // 32) if at.isdigit() else f"{at} // 32"
        window = window.format(k=at, g=groups)
        if not self._placed:
            return f"{operand}{number} = pl.load({window})"
        mat = "target_memory=pl.Mem.Mat"
        return f"{operand}{number} = pl.move(pl.load({window}, {mat}), pl.Mem.{memory})"

    def product(self) -> str:
        sums = st.sampled_from("xy")
        left, right = self._draw(_BITS), self._draw(_BITS)
        crossed = self._draw(st.integers(0, 4)) == 0
        p, q = (1 - left, 1 - right) if crossed else (left, right)
        operands = f"l{left}, p{p}, r{right}, q{q}"
        target = self._draw(sums)
        if self._draw(st.integers(0, 4)) == 0:
            return f"{target} = pl.matmul_mx({operands})"
        source = self._draw(sums) if self._draw(st.integers(0, 3)) == 0 else target
        return f"{target} = pl.matmul_mx_acc({source}, {operands})"

    def block(self, depth: int, loops: Sequence[str]) -> list[str]:
        lines: list[str] = []
        for _ in range(self._draw(st.integers(1, 4))):
            lines += self.statement(depth, loops)
        return lines

    def statement(self, depth: int, loops: Sequence[str]) -> list[str]:
        kinds = ["load", "load", "product", "product", "store", "name", "loop", "branch"]
        kind = self._draw(st.sampled_from(kinds if depth else kinds[:6]))
        match kind:
            case "load":
                operand = self._draw(st.sampled_from(list(_OPERANDS)))
                return [self.load(operand, self._draw(_BITS), loops)]
            case "product":
                return [self.product()]
            case "store":
                row = 16 * self._draw(st.integers(0, 3))
                return [f"c = pl.store({self._draw(st.sampled_from('xy'))}, [{row}, 0], c)"]
            case "name":
                operand = self._draw(st.sampled_from(list(_OPERANDS)))
                return [f"{operand}0 = {operand}1"]
            case "loop":
                return self.loop(depth, loops)
            case _:
                return self.branch(depth, loops)

    def loop(self, depth: int, loops: Sequence[str]) -> list[str]:
        self._loops += 1
        name = f"k{self._loops}"
        start = 64 * self._draw(st.integers(0, 2))
        stop = str(start + 64 * self._draw(st.integers(0, 4)))
        stop = self._draw(st.sampled_from([stop, stop, "n * 64"]))
        head = self._draw(st.sampled_from(["range({})", "pipeline({}, stage={})"]))
        stage = self._draw(st.sampled_from([1, 2, 2, 3]))
        bounds = f"{start}, {stop}, {self._draw(st.sampled_from([64, 128]))}"
        return [
            f"for {name} in pl.{head.format(bounds, stage)}:",
            *_indented(self.block(depth - 1, (*loops, name))),
        ]

    def branch(self, depth: int, loops: Sequence[str]) -> list[str]:
        left = self._draw(st.sampled_from(["n", *loops]))
        right = self._draw(st.integers(0, 3)) if left == "n" else 64 * self._draw(st.integers(0, 5))
        lines = [f"if {left} < {right}:", *_indented(self.block(depth - 1, loops))]
        if self._draw(st.booleans()):
            lines += ["else:", *_indented(self.block(depth - 1, loops))]
        return lines


@st.composite
def random_kernels(draw: st.DrawFn) -> list[str]:
    """The body of a kernel that gives every name a value first and stores both sums last."""
    drawing = Drawing(draw, placed=draw(st.booleans()))
    lines = [drawing.load(operand, number, ()) for operand in _OPERANDS for number in range(2)]
    lines += ["x = pl.matmul_mx(l0, p0, r0, q0)", "y = pl.matmul_mx(l1, p1, r1, q1)"]
    lines += [f"c = pl.store(x, [{row}, 0], c)" for row in (0, 16, 32, 48)]
    lines += drawing.block(2, ())
    return [*lines, "c = pl.store(x, [0, 0], c)", "c = pl.store(y, [16, 0], c)", "return c"]
