"""Selection: the fields of every instruction by hand arithmetic, and what is refused."""

from collections.abc import Callable

import pytest

from scalebox.codegen.executable import Executable
from scalebox.codegen.isa.program import Instruction
from scalebox.codegen.isa.vocabulary import Convert, ElementBits, ElementType, MadInit
from scalebox.codegen.kernel import Kernel
from scalebox.codegen.select.operands import Operands
from scalebox.codegen.select.rules import select_call
from scalebox.codegen.tensors import Layout, View
from scalebox.ir.errors import Span, UserError
from scalebox.ir.expr import Call, Op
from scalebox.ir.types import TensorLayout

from ..emit.scalar_machine import run_scalar_unit
from ..sync.flag_checker import judge

Compile = Callable[[str], Executable]

HEAD = """
import scalebox.ir.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[{m}, {k}], pl.{a}], sa: pl.Tensor[[{m}, {g}], pl.FP8E8M0, pl.MX_A_ZZ],
          b: pl.Tensor[[{k}, {n}], pl.{b}], sb: pl.Tensor[[{g}, {n}], pl.FP8E8M0, pl.MX_B_NN],
          z: pl.Tensor[[1, {n}], pl.FP32], c: pl.Out[pl.Tensor[[{m}, {n}], pl.{out}]],
          d: pl.InOut[pl.Tensor[[{m}, {n}], pl.{out}]], s: pl.Scalar[pl.INDEX]):
"""
LOADS = """
        a1 = pl.load(a, [0, 0], [{m}, {k}], [{vm}, {vk}], target_memory=pl.Mem.Mat)
        sa1 = pl.load(sa, [0, 0], [{m}, {g}], target_memory=pl.Mem.Mat)
        b1 = pl.load(b, [0, 0], [{k}, {n}], [{vk}, {vn}], target_memory=pl.Mem.Mat)
        sb1 = pl.load(sb, [0, 0], [{g}, {n}], target_memory=pl.Mem.Mat)
        a0 = pl.move(a1, target_memory=pl.Mem.Left)
        sa0 = pl.move(sa1, target_memory=pl.Mem.LeftScale)
        b0 = pl.move(b1, target_memory=pl.Mem.Right)
        sb0 = pl.move(sb1, target_memory=pl.Mem.RightScale)
"""
PRODUCT = """
        acc = pl.matmul_mx(a0, sa0, b0, sb0)
        c = pl.store(acc, [0, 0], c)
        return c
"""


def source(body: str = LOADS + PRODUCT, **given: object) -> str:
    numbers: dict[str, object] = {"m": 64, "k": 128, "n": 64, "a": "FP8E4M3FN", "b": "FP8E4M3FN"}
    numbers |= {"out": "FP32"} | given
    numbers = {"vm": numbers["m"], "vk": numbers["k"], "vn": numbers["n"]} | numbers
    return (HEAD + body).format(g=-(-int(str(numbers["k"])) // 32), **numbers)


def kernel(compiled: Compile, text: str) -> Kernel:
    (found,) = compiled(text).kernels
    return found


def only(found: Kernel, mnemonic: str) -> Instruction:
    (instruction,) = [each for each in found.program if each.mnemonic == mnemonic]
    return instruction


def matching(found: Kernel, mnemonic: str) -> list[dict[str, int]]:
    return [each.fields for each in found.program if each.mnemonic == mnemonic]


def without_registers(fields: dict[str, int]) -> dict[str, int]:
    return {name: value for name, value in fields.items() if name not in ("xr", "xc", "xi", "xj")}


# --------------------------------------------------------------------------- whole tiles


def test_data_tiles_are_loaded_as_they_stand(compiled: Compile):
    found = kernel(compiled, source())
    left, right = matching(found, "gm_to_l1_nz")
    assert without_registers(left) == {"view": 0, "l1": 0, "rows": 64, "cols": 128, "l1_rows": 64}
    # Behind 64 x 128 bytes of A and 64 x 4 of its scales, at the next multiple of 512.
    assert without_registers(right) == {
        "view": 2, "l1": 0x2200, "rows": 128, "cols": 64, "l1_rows": 128,
    }  # fmt: skip


def test_scale_tiles_are_loaded_by_boxes(compiled: Compile):
    found = kernel(compiled, source(n=96))
    left, right = matching(found, "gm_to_l1_boxes")
    # 64 rows are 4 boxes, 96 columns 6, 4 groups 2.
    assert without_registers(left) == {"view": 1, "l1": 0x2000, "ni": 4, "nj": 2, "l1_nj": 2}
    assert without_registers(right) == {"view": 3, "l1": 0x5200, "ni": 6, "nj": 2, "l1_nj": 2}


def test_views_describe_the_tensors(compiled: Compile):
    found = kernel(compiled, source(n=96))
    assert found.views == (
        View(0, Layout.ND, 8, (64, 128), (128, 1)),
        View(1, Layout.MX_A_ZZ, 8, (1, 4, 2, 16, 2), (256, 64, 32, 2, 1)),
        View(2, Layout.ND, 8, (128, 96), (96, 1)),
        View(3, Layout.MX_B_NN, 8, (1, 6, 2, 16, 2), (384, 64, 32, 2, 1)),
        View(5, Layout.ND, 32, (64, 96), (96, 1)),
    )


def test_moves_fill_the_buffers_of_the_cube(compiled: Compile):
    found = kernel(compiled, source())
    assert only(found, "l1_to_l0a").fields == {
        "src": 0, "dst": 0, "row_boxes": 4, "col_boxes": 4, "src_pitch": 4, "dst_pitch": 4,
    }  # fmt: skip
    assert only(found, "l1_to_l0b").fields == {
        "src": 0x2200, "dst": 0, "bits": ElementBits.B8, "k": 128, "n": 64, "src_k": 128,
    }  # fmt: skip
    assert only(found, "l1_to_scale_a").fields == {
        "src": 0x2000, "dst": 0, "row_boxes": 4, "col_boxes": 2, "src_pitch": 2,
    }  # fmt: skip
    assert only(found, "l1_to_scale_b").fields == {
        "src": 0x4200, "dst": 0, "row_boxes": 4, "col_boxes": 2, "src_pitch": 2,
    }  # fmt: skip


def test_a_product_and_its_store(compiled: Compile):
    found = kernel(compiled, source())
    assert only(found, "mad_mx").fields == {
        "c": 0, "a": 0, "b": 0, "bias": 0, "m": 64, "k": 128, "n": 64,
        "a_type": ElementType.E4M3, "b_type": ElementType.E4M3, "init": MadInit.ZERO,
    }  # fmt: skip
    assert without_registers(only(found, "l0c_to_gm").fields) == {
        "view": 4, "l0c": 0, "rows": 64, "cols": 64, "src_rows": 64, "convert": Convert.FP32,
    }  # fmt: skip


def test_scales_lie_at_a_sixteenth_of_their_datas_address(compiled: Compile):
    again = LOADS.replace("a1", "a2").replace("a0", "a3").replace("b1", "b2").replace("b0", "b3")
    body = LOADS + again + PRODUCT.replace(
        "        c = pl", "        acc = pl.matmul_mx_acc(acc, a3, sa3, b3, sb3)\n        c = pl"
    )  # fmt: skip
    found = kernel(compiled, source(body))
    # The second tiles lie behind 64 x 128 and 128 x 64 bytes.
    assert [each["dst"] for each in matching(found, "l1_to_l0a")] == [0, 8192]
    assert [each["dst"] for each in matching(found, "l1_to_scale_a")] == [0, 512]
    assert [each["dst"] for each in matching(found, "l1_to_scale_b")] == [0, 512]
    first, second = matching(found, "mad_mx")
    assert (second["a"], second["b"], second["c"]) == (8192, 8192, first["c"])
    assert second["init"] == MadInit.ACC


# --------------------------------------------------------------------------- narrowed tiles


def test_a_narrowed_tile_is_packed_in_the_buffers_of_the_cube(compiled: Compile):
    found = kernel(compiled, source(vm=40, vk=100, vn=50))
    left, right = matching(found, "gm_to_l1_nz")
    assert (left["rows"], left["cols"], left["l1_rows"]) == (40, 100, 64)
    assert (right["rows"], right["cols"], right["l1_rows"]) == (100, 50, 128)
    moved = only(found, "l1_to_l0a").fields
    # 40 rows are 3 boxes, 100 bytes 4; L1 keeps the pitch of 64 rows.
    assert moved | {"src": 0, "dst": 0} == {
        "src": 0, "dst": 0, "row_boxes": 3, "col_boxes": 4, "src_pitch": 4, "dst_pitch": 3,
    }  # fmt: skip
    moved = only(found, "l1_to_l0b").fields
    assert (moved["k"], moved["n"], moved["src_k"]) == (100, 50, 128)
    # 100 elements are 4 groups, 2 boxes; 40 rows 3 boxes, 50 columns 4.
    scales = [only(found, f"l1_to_scale_{side}").fields for side in "ab"]
    assert [(s["row_boxes"], s["col_boxes"], s["src_pitch"]) for s in scales] == [
        (3, 2, 2),
        (4, 2, 2),
    ]
    product = only(found, "mad_mx").fields
    assert (product["m"], product["k"], product["n"]) == (40, 100, 50)
    stored = only(found, "l0c_to_gm").fields
    assert (stored["rows"], stored["cols"], stored["src_rows"]) == (40, 50, 48)


@pytest.mark.parametrize(("k", "boxes"), [(1, 1), (32, 1), (33, 1), (64, 1), (65, 2), (128, 2)])
def test_half_boxes_of_scales_count_whole(compiled: Compile, k: int, boxes: int):
    found = kernel(compiled, source(vk=k))
    for side in "ab":
        moved = only(found, f"l1_to_scale_{side}").fields
        assert (moved["col_boxes"], moved["src_pitch"]) == (boxes, 2)


# --------------------------------------------------------------------------- operands


def test_four_bit_operands_have_boxes_of_64_elements(compiled: Compile):
    found = kernel(compiled, source(a="FP4", b="FP4", k=192))
    assert only(found, "l1_to_l0a")["col_boxes"] == 3
    assert only(found, "l1_to_l0b")["bits"] == ElementBits.B4
    product = only(found, "mad_mx")
    assert (product["a_type"], product["b_type"]) == (ElementType.E2M1, ElementType.E2M1)
    assert found.views[0].bits == 4
    # 64 x 192 half bytes of A, then 64 x 6 scales.
    assert matching(found, "gm_to_l1_boxes")[0]["l1"] == 64 * 96


@pytest.mark.parametrize(
    ("a", "b", "types"),
    [
        ("FP8E5M2", "FP8E4M3FN", (ElementType.E5M2, ElementType.E4M3)),
        ("FP8E4M3FN", "FP8E5M2", (ElementType.E4M3, ElementType.E5M2)),
        ("FP4E1M2", "FP4", (ElementType.E1M2, ElementType.E2M1)),
    ],
)
def test_operands_may_be_of_two_types(
    compiled: Compile, a: str, b: str, types: tuple[ElementType, ElementType]
):
    product = only(kernel(compiled, source(a=a, b=b)), "mad_mx")
    assert (product["a_type"], product["b_type"]) == types


@pytest.mark.parametrize(
    ("out", "convert"), [("FP32", Convert.FP32), ("BF16", Convert.BF16), ("FP16", Convert.FP16)]
)
def test_the_store_converts_to_the_tensors_type(compiled: Compile, out: str, convert: Convert):
    found = kernel(compiled, source(out=out))
    assert only(found, "l0c_to_gm")["convert"] == convert
    assert found.views[-1].bits == (32 if out == "FP32" else 16)


def test_a_bias_is_one_row_on_its_way_to_the_bias_table(compiled: Compile):
    bias = """
        z1 = pl.load(z, [0, 0], [1, {n}], target_memory=pl.Mem.Mat)
        z0 = pl.move(z1, target_memory=pl.Mem.Bias)
        acc = pl.matmul_mx_bias(a0, sa0, b0, sb0, z0)
        c = pl.store(acc, [0, 0], c)
        return c
"""
    found = kernel(compiled, source(LOADS + bias, n=96))
    assert without_registers(only(found, "gm_to_l1_row").fields) == {
        "view": 4,
        "l1": 0x5400,
        "cols": 96,
    }
    assert only(found, "l1_to_bias").fields == {"src": 0x5400, "dst": 0, "bytes": 384}
    product = only(found, "mad_mx")
    assert (product["init"], product["bias"]) == (MadInit.BIAS, 0)


def test_offsets_reach_the_instruction_in_registers(compiled: Compile):
    body = """
        for i in pl.range(1, 3):
            a1 = pl.load(a, [i * 16, 32], [16, 64], target_memory=pl.Mem.Mat)
            sa1 = pl.load(sa, [i * 16, 2], [16, 2], target_memory=pl.Mem.Mat)
            z1 = pl.load(z, [0, i], [1, 8], target_memory=pl.Mem.Mat)
        return c
"""
    found = kernel(compiled, source(body))
    placed = [each.registers for each in run_scalar_unit(found.program, [0])]
    # Rows and columns count elements; scales count boxes of 16 rows by 2 groups.
    assert placed == [
        {"xr": 16, "xc": 32},
        {"xi": 1, "xj": 1},
        {"xr": 0, "xc": 1},
        {"xr": 32, "xc": 32},
        {"xi": 2, "xj": 1},
        {"xr": 0, "xc": 2},
    ]


# --------------------------------------------------------------------------- through memory


def test_what_a_kernel_stores_and_loads_again_is_ordered_through_gm(compiled: Compile):
    """The first product's row 0 becomes the bias of the second one."""
    again = """
        acc = pl.matmul_mx(a0, sa0, b0, sb0)
        d = pl.store(acc, [0, 0], d)
        z0 = pl.move(pl.load(d, [0, 0], [1, {n}], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Bias)
        acc2 = pl.matmul_mx_bias(a0, sa0, b0, sb0, z0)
        c = pl.store(acc2, [0, 0], c)
        return c, d
"""
    found = kernel(compiled, source(LOADS + again))
    flags = [(each["src"], each["dst"]) for each in found.program if each.mnemonic == "set_flag"]
    assert (6, 4) in flags
    assert judge(found.program, found.views, [0]).sound


def test_two_views_of_a_tensor_are_one_tensor(compiled: Compile):
    """Stored as [64, 64], loaded as [1, 4096]."""
    again = """
        acc = pl.matmul_mx(a0, sa0, b0, sb0)
        d = pl.store(acc, [0, 0], d)
        flat = pl.tensor.view(d, [1, 4096])
        z0 = pl.move(pl.load(flat, [0, 64], [1, {n}], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Bias)
        acc2 = pl.matmul_mx_bias(a0, sa0, b0, sb0, z0)
        c = pl.store(acc2, [0, 0], c)
        return c, d
"""
    found = kernel(compiled, source(LOADS + again))
    assert found.views[-2].dims == (1, 4096)
    assert found.views[-2].param == found.views[-3].param
    assert judge(found.program, found.views, [0]).sound


# --------------------------------------------------------------------------- refusals


def refused(compiled: Compile, text: str) -> tuple[str, str]:
    """Return the message and the source line that the error points at."""
    with pytest.raises(UserError) as caught:
        compiled(text)
    assert caught.value.span is not None
    return caught.value.message, text.splitlines()[caught.value.span.line - 1].strip()


CASES = {
    "a symbolic valid shape": (
        LOADS.replace("[{vm}, {vk}]", "[s, {vk}]") + PRODUCT,
        "The valid shape of a tile that is compiled must be constant, not symbolic",
        "a1 = pl.load",
    ),
    "a store from Mat": (
        LOADS + "        z1 = pl.load(z, [0, 0], [1, {n}], target_memory=pl.Mem.Mat)\n"
        "        d = pl.store(z1, [0, 0], d)\n" + PRODUCT,
        "A store must come from Acc or Vec, not from Mat",
        "d = pl.store",
    ),
    "a break": (
        "        for i in pl.range(0, 4):\n            if i == s:\n                break\n" + LOADS + PRODUCT,
        "A kernel that is compiled must be made of assignments, loops and branches, not of 'break'",
        "break",
    ),
    "a step that is no constant": (
        "        for i in pl.range(0, 4, s):\n            x = i\n" + LOADS + PRODUCT,
        "The step of a loop that is compiled must be a constant other than 0, not a variable",
        "for i in",
    ),
    "a tensor that differs from trip to trip": (
        LOADS + "        acc = pl.matmul_mx(a0, sa0, b0, sb0)\n        x = c\n"
        "        for i in pl.range(0, 2):\n            x = pl.store(acc, [0, 0], d)\n"
        "        return x\n",
        "'x' must stand for one tensor on every way to it, not for two",
        "for i in",
    ),
    "a tensor that differs from arm to arm": (
        LOADS + "        acc = pl.matmul_mx(a0, sa0, b0, sb0)\n        x = c\n"
        "        if s == 0:\n            x = pl.store(acc, [0, 0], d)\n        return x\n",
        "'x' must stand for one tensor on every way to it, not for two",
        "if s == 0:",
    ),
    "a float that is computed": (
        "        x = pl.cast(s, pl.FP32)\n" + LOADS + PRODUCT,
        "A scalar that is compiled must be a Bool or an integer that fits a signed 64-bit word, not "
        "Float32",
        "x = pl.cast",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_the_cube_core_cannot_do_is_refused_with_its_place(compiled: Compile, case: str):
    body, message, line = CASES[case]
    found, where = refused(compiled, source(body))
    assert found == message
    assert where.startswith(line)


def test_an_op_that_no_instruction_does_is_refused_with_those_that_there_are():
    call = Call(Op("tensor.dim"), (), Span.unknown())
    with pytest.raises(UserError) as caught:
        select_call(Operands(), None, call)
    assert caught.value.message == "A kernel that is compiled must not use tensor.dim"
    assert caught.value.hint is not None
    for op in ("tile.load", "tile.matmul_mx_acc", "tile.row_expand_add"):
        assert op in caught.value.hint


def test_a_loop_of_a_variable_step_is_told_what_works(compiled: Compile):
    with pytest.raises(UserError) as caught:
        compiled(source(CASES["a step that is no constant"][0]))
    assert (
        caught.value.hint == "a while loop may add a variable to a number of its own in each trip"
    )


def test_a_store_from_mat_is_told_where_to_load_instead(compiled: Compile):
    with pytest.raises(UserError) as caught:
        compiled(source(CASES["a store from Mat"][0]))
    assert caught.value.hint == "load it with target_memory=pl.Mem.Vec"


def test_a_call_of_another_kernel_is_refused(compiled: Compile):
    helper = """
    @pl.function(type=pl.FunctionType.InCore)
    def helper(self, x: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
        return x
"""
    text = source(LOADS + "        y = self.helper(z)\n" + PRODUCT) + helper
    message, where = refused(compiled, text)
    assert message == "A kernel that is compiled must not call helper"
    assert where.startswith("y = self.helper")


def test_more_columns_than_a_product_can_have_are_refused(compiled: Compile):
    message, _ = refused(compiled, source(m=16, k=64, n=4096, a="FP4", b="FP4"))
    assert "must be at most" in message or "must be 1 to 4095, not 4096" in message


# --------------------------------------------------------------------------- names


def test_layouts_have_the_same_names_on_both_floors():
    assert {each.value.lower() for each in TensorLayout} == {each.value for each in Layout}
