"""Windows of tensors in NZ and of higher rank: the instruction, and the view that it looks through."""

import pytest

import scalebox
from scalebox.codegen.executable import Layout, View
from scalebox.codegen.kernel import Kernel
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import UserError

TEXT = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        x: pl.Tensor[[2, 3, 64, 128], pl.FP8E4M3FN, pl.NZ],
        w: pl.Tensor[[64, 64], pl.BF16, pl.NZ],
        a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[2, 4, 16, 32], pl.FP32]],
        n: pl.Scalar[pl.INDEX],
    ):
{body}
"""
PRODUCT = """
p = pl.matmul_mx(
    pl.load(a, [0, 0], [16, 64]), pl.load(sa, [0, 0], [16, 2]),
    pl.load(b, [0, 0], [64, 32]), pl.load(sb, [0, 0], [2, 32]),
)
"""


def compiled(body: str) -> Kernel:
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    parsed = pl.parse(TEXT.format(body=lines))
    assert isinstance(parsed, Program)
    (found,) = scalebox.compile(parsed).kernels
    return found


def fields(found: Kernel, mnemonic: str) -> list[dict[str, int]]:
    registers = ("xr", "xc", "xi", "xj")
    return [
        {name: value for name, value in each.fields.items() if name not in registers}
        for each in found.program
        if each.mnemonic == mnemonic
    ]


def test_a_load_from_nz_takes_columns_of_boxes() -> None:
    found = compiled("t = pl.load(w, [16, 32], [48, 32])")
    assert fields(found, "gm_to_l1_nz_boxes") == [
        {"view": 0, "l1": 0, "col_boxes": 2, "row_boxes": 3, "dst_pitch": 3}
    ]
    # 64 columns of 16 bits are 4 columns of boxes, each of 4 boxes of 256 elements.
    assert found.views == (View(1, Layout.NZ, 16, (1, 4, 4, 16, 16), (4096, 1024, 256, 16, 1)),)


def test_matrices_of_nz_are_folded_into_columns_of_boxes() -> None:
    found = compiled("t = pl.load(x, [1, 2, 0, 64], [1, 1, 64, 64])")
    assert fields(found, "gm_to_l1_nz_boxes") == [
        {"view": 0, "l1": 0, "col_boxes": 2, "row_boxes": 4, "dst_pitch": 4}
    ]
    # 6 matrices of 4 columns of boxes.
    assert found.views == (View(0, Layout.NZ, 8, (1, 24, 4, 16, 32), (49152, 2048, 512, 32, 1)),)
    numbers = [each["imm"] for each in found.program if each.mnemonic == "movi"]
    assert 5 * 4 + 2 in numbers


def test_a_store_into_higher_rank_counts_rows_through_all_matrices() -> None:
    found = compiled(f"{PRODUCT}\nc = pl.store(p, [1, 3, 0, 0], c, [1, 1, 16, 32])")
    (store,) = fields(found, "l0c_to_gm")
    assert (store["rows"], store["cols"]) == (16, 32)
    assert found.views[store["view"]] == View(6, Layout.ND, 32, (128, 32), (32, 1))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "t = pl.load(x, [0, 0, 0, 0], [1, 2, 64, 128])",
            "A load of the cube core must take one matrix of a tensor in NZ at a time, not 2",
        ),
        (
            f"{PRODUCT}\nc = pl.store(p, [0, 0, 0, 0], c, [2, 4, 2, 32])",
            "tile.store of the cube core must take rows that follow one another, which those of "
            "[2, 4, 2, 32] of [2, 4, 16, 32] do not",
        ),
        (
            f"{PRODUCT}\nc = pl.store(p, [0, 0, 0, 0], c, [1, 2, 16, 16])",
            "A store of the cube core must keep the tile's shape, not write it by other shapes",
        ),
    ],
)
def test_what_one_instruction_cannot_do_is_refused(body: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        compiled(body)
    assert caught.value.message == message
    assert caught.value.span is not None
    assert caught.value.span.is_known
