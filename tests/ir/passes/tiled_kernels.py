"""Kernels that multiply whole matrices from L1, as text, and random ones of them."""

from dataclasses import dataclass

from hypothesis import strategies as st

from scalebox.ir import language as pl
from scalebox.ir.core import Program

#: Element types that the cube multiplies with each other, with scales and without.
PAIRS = (("FP8E4M3FN", "FP8E4M3FN"), ("FP8E5M2", "FP8E4M3FN"), ("FP4", "FP4"))
PLAIN_PAIRS = (
    *((dtype, dtype) for dtype in ("FP16", "BF16", "FP32", "INT8")),
    ("FP8E4M3FN", "FP8E5M2"),
)
#: Elements of 32 bytes.
C0 = {"FP4": 64, "FP16": 16, "BF16": 16, "FP32": 8}


@dataclass(frozen=True)
class Kernel:
    """A matmul of whole matrices.

    Attributes:
        m: Physical rows, with `valid[0]` valid; so on. One row makes a gemv, its scales a plain row.
        dtypes: Element types of left and right.
        out: What is stored.
        products: How many products are added up into the result.
        bias: Whether the sums start from a row of biases.
        placed: Whether the loads name Mat.
        twice: Whether the result is stored a second time.
        row: Where the rows are stored, as a kernel writes it.
        scaled: Whether the operands are block-scaled.
    """

    m: int
    k: int
    n: int
    valid: tuple[int, int, int] = (0, 0, 0)
    dtypes: tuple[str, str] = PAIRS[0]
    out: str = "FP32"
    products: int = 1
    bias: bool = False
    placed: bool = True
    twice: bool = False
    row: str = "0"
    scaled: bool = True

    def text(self) -> str:
        m, k, n = self.m, self.k, self.n
        vm, vk, vn = (v or whole for v, whole in zip(self.valid, (m, k, n), strict=True))
        groups, total = k // 32, k * self.products
        memory = ", target_memory=pl.Mem.Mat" if self.placed else ""
        of_a_row = ", target_memory=pl.Mem.Mat" if m == 1 else ""
        left, right = self.dtypes
        layout = "" if m == 1 else ", pl.MX_A_ZZ"
        scales = f"""
        sa: pl.Tensor[[{m}, {total // 32}], pl.FP8E8M0{layout}],
        sb: pl.Tensor[[{total // 32}, {n}], pl.FP8E8M0, pl.MX_B_NN],"""
        head = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[{m}, {total}], pl.{left}],{scales if self.scaled else ""}
        b: pl.Tensor[[{total}, {n}], pl.{right}],
        bias: pl.Tensor[[1, {n}], pl.{"INT32" if left == "INT8" else "FP32"}],
        c: pl.Out[pl.Tensor[[{2 * m + 32}, {n}], pl.{self.out}]],
        at: pl.Scalar[pl.INDEX],
    ):
"""
        lines: list[str] = []
        if self.bias:
            lines.append(f"start = pl.load(bias, [0, 0], [1, {n}], [1, {vn}]{memory})")
        for number in range(self.products):
            first, group = number * k, number * groups
            lines += [
                f"l{number} = pl.load(a, [0, {first}], [{m}, {k}], [{vm}, {vk}]{memory})",
                f"r{number} = pl.load(b, [{first}, 0], [{k}, {n}], [{vk}, {vn}]{memory})",
            ]
            if self.scaled:
                lines += [
                    f"p{number} = pl.load(sa, [0, {group}], [{m}, {groups}]{of_a_row})",
                    f"q{number} = pl.load(sb, [{group}, 0], [{groups}, {n}])",
                ]
        name = f"{'gemv' if m == 1 else 'matmul'}{'_mx' if self.scaled else ''}"
        for number in range(self.products):
            operands = f"l{number}, r{number}"
            if self.scaled:
                operands = f"l{number}, p{number}, r{number}, q{number}"
            if number:
                lines.append(f"x = pl.{name}_acc(x, {operands})")
            elif self.bias:
                lines.append(f"x = pl.{name}_bias({operands}, start)")
            else:
                lines.append(f"x = pl.{name}({operands})")
        lines.append(f"c = pl.store(x, [{self.row}, 0], c)")
        if self.twice:
            lines.append(f"c = pl.store(x, [{m}, 0], c)")
        body = "\n".join(f"        {line}" for line in [*lines, "return c"])
        return f"{head}{body}\n"

    def program(self) -> Program:
        made = pl.parse(self.text())
        assert isinstance(made, Program)
        return made


@st.composite
def random_matmuls(draw: st.DrawFn) -> Kernel:
    """Matrices of a few boxes; valid extents from one element to all of them."""
    scaled = draw(st.booleans())
    pair = draw(st.sampled_from(PAIRS if scaled else PLAIN_PAIRS))
    m = draw(st.sampled_from((1, *range(16, 96, 16))))
    k = (64 if scaled else max(16, C0.get(pair[0], 32))) * draw(st.integers(1, 5))
    n = 32 * draw(st.integers(1, 5)) if scaled else 16 * draw(st.integers(1, 10))
    some = draw(st.booleans())
    valid = tuple(draw(st.integers(1, size)) if some else size for size in (m, k, n))
    if pair[1] == "FP4":  # two elements share a byte
        valid = (valid[0], -(-valid[1] // 2) * 2, -(-valid[2] // 2) * 2)
    floats = st.sampled_from(("FP32", "BF16", "FP16"))
    return Kernel(
        m,
        k,
        n,
        (valid[0], valid[1], valid[2]),
        pair,
        "INT32" if pair[0] == "INT8" else draw(floats),
        products=draw(st.integers(1, 3)),
        bias=draw(st.booleans()),
        placed=draw(st.booleans()),
        twice=draw(st.integers(0, 4)) == 0,
        row=draw(st.sampled_from(("0", "16", "at", "at + 16"))),
        scaled=scaled,
    )


#: Sizes of L0A, L0B, L0C and the bias table in which a few boxes fill everything.
SMALL_MACHINES = st.fixed_dictionaries(
    {
        "l0a_bytes": st.sampled_from((1024, 2048, 4096, 16384)),
        "l0b_bytes": st.sampled_from((4096, 8192, 16384)),
        "l0c_bytes": st.sampled_from((4096, 8192, 32768)),
        "bias_bytes": st.sampled_from((256, 4096)),
    }
)
