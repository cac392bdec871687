"""Which instruction each op of the vector core becomes, and its fields, by hand from the manual."""

import numpy as np
import pytest

from scalebox.codegen.isa.program import Instruction
from scalebox.codegen.isa.vocabulary import (
    Rounding,
    VectorBinary,
    VectorComparison,
    VectorType,
    VectorUnary,
)
from scalebox.ir.cast_mode import CastMode
from scalebox.ir.core import Program
from scalebox.ir.errors import IRTypeError
from scalebox.ir.numerics.functions import Binary, Comparison, Unary

from .vector_kernels import compiled, instructions, kernel

SHAPE = "[[16, 64], pl.FP32]"
LOAD = "t = pl.load(a, [0, 0], [16, 64])"
STORE = "out = pl.store(u, [0, 0], out)"
BINARIES = ("add", "sub", "mul", "div", "rem", "maximum", "minimum")


def one_op(op: str, dtype: str = "FP32") -> Program:
    return kernel({"a": SHAPE}, [LOAD, f"u = {op}", STORE], f"[[16, 64], pl.{dtype}]")


def only(program: Program) -> Instruction:
    """Return the only instruction that pipe V runs."""
    (made,) = compiled(program).kernels
    (found,) = (each for each in made.program if each.mnemonic.startswith("v_"))
    return found


def holds(program: Program, instruction: Instruction, register: str = "xs") -> int:
    """Return the constant that a register field of an instruction holds: the last one put there."""
    (made,) = compiled(program).kernels
    position = made.program.index(instruction)
    moves = [
        each["imm"]
        for each in made.program[:position]
        if each.mnemonic == "movi" and each["xd"] == instruction[register]
    ]
    return moves[-1]


# --------------------------------------------------------------------------- loads and stores


def test_a_load_and_a_store_are_one_transfer_each_between_flags():
    program = kernel({"a": SHAPE}, [LOAD, "u = pl.exp(t)", STORE], SHAPE)
    found = [each.mnemonic for each in instructions(program)]
    assert found == [
        "movi",
        "gm_to_ub",
        "set_flag",
        "wait_flag",
        "v_unary",
        "set_flag",
        "wait_flag",
        "ub_to_gm",
        "halt",
    ]
    load, store = instructions(program, "gm_to_ub", "ub_to_gm")
    # 64 elements of 4 bytes are 8 units of 32 bytes a row.
    assert load.fields == {
        "view": 0, "xr": 0, "xc": 0, "ub": 0, "rows": 16, "cols": 64, "pitch": 8,
    }  # fmt: skip
    assert store.fields == {
        "view": 1, "xr": 0, "xc": 0, "ub": 16 * 64 * 4, "rows": 16, "cols": 64, "pitch": 8,
    }  # fmt: skip


def test_what_is_valid_is_transferred_at_the_pitch_of_the_whole_tile():
    body = ["u = pl.load(a, [0, 0], [16, 64], [5, 20])", STORE]
    load, store = instructions(kernel({"a": SHAPE}, body, SHAPE), "gm_to_ub", "ub_to_gm")
    for each in (load, store):
        assert (each["rows"], each["cols"], each["pitch"]) == (5, 20, 8)


def test_a_column_is_packed():
    body = ["u = pl.load(a, [0, 3], [16, 1])", "out = pl.store(u, [0, 0], out)"]
    program = kernel({"a": SHAPE}, body, "[[16, 1], pl.FP32]")
    for each in instructions(program, "gm_to_ub", "ub_to_gm"):
        assert (each["rows"], each["cols"], each["pitch"]) == (16, 1, 0)


def test_a_single_row_may_end_anywhere():
    body = ["u = pl.load(a, [2, 0], [1, 20])", "out = pl.store(u, [0, 0], out)"]
    (load,) = instructions(kernel({"a": SHAPE}, body, "[[1, 20], pl.FP32]"), "gm_to_ub")
    assert (load["rows"], load["cols"], load["pitch"]) == (1, 20, 3)


def test_a_tensor_of_columns_is_seen_by_its_strides():
    view = "pl.TensorView(stride=[1, 16], layout=pl.DN)"
    program = kernel({"a": f"[[16, 64], pl.FP32, {view}]"}, [LOAD, "u = pl.neg(t)", STORE], SHAPE)
    (made,) = compiled(program).kernels
    assert made.views[0].strides == (1, 16)


def test_elements_of_64_bits_are_no_tile_of_ub():
    shape = "[[16, 64], pl.INT64]"
    body = ["u = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)", STORE]
    with pytest.raises(IRTypeError) as caught:
        compiled(kernel({"a": shape}, body, shape))
    assert caught.value.message == (
        "tile.load of the vector core must move elements of at most 32 bits, not Int64"
    )


# --------------------------------------------------------------------------- element by element


@pytest.mark.parametrize("function", Unary, ids=lambda f: f.value)
def test_a_function_of_one_element_is_one_instruction(function: Unary):
    found = only(one_op(f"pl.{function.value}(t)"))
    assert found.mnemonic == "v_unary"
    assert found.fields == {
        "dst": 4096, "src": 0, "op": VectorUnary[function.name], "type": VectorType.FP32,
        "rows": 16, "cols": 64, "dst_pitch": 8, "src_pitch": 8,
    }  # fmt: skip


@pytest.mark.parametrize("name", BINARIES)
def test_a_function_of_two_elements_is_one_instruction(name: str):
    body = [LOAD, "s = pl.load(a, [0, 0], [16, 64])", f"u = pl.{name}(t, s)", STORE]
    found = only(kernel({"a": SHAPE}, body, SHAPE))
    assert found.mnemonic == "v_binary"
    assert found.fields == {
        "dst": 8192, "a": 0, "b": 4096, "op": VectorBinary[Binary(name).name],
        "type": VectorType.FP32, "rows": 16, "cols": 64,
        "dst_pitch": 8, "a_pitch": 8, "b_pitch": 8,
    }  # fmt: skip


@pytest.mark.parametrize("name", BINARIES)
def test_a_scalar_operand_is_a_register_with_its_code(name: str):
    program = one_op(f"pl.{name}(t, -2.0)")
    found = only(program)
    assert found.mnemonic == "v_scalar"
    assert found["op"] == VectorBinary[Binary(name).name]
    assert found["swap"] == 0
    assert holds(program, found) & 0xFFFFFFFF == int(np.float32(-2).view(np.uint32))


@pytest.mark.parametrize(
    ("dtype", "number", "code"),
    [
        ("FP32", "1.5", 0x3FC00000),
        ("FP16", "1.0", 0x3C00),
        ("BF16", "-1.0", 0xBF80),
        ("INT8", "-3", 0xFD),
        ("INT16", "-2", 0xFFFE),
        ("INT32", "7", 7),
        ("UINT8", "200", 200),
    ],
)
def test_the_code_is_that_of_the_elements(dtype: str, number: str, code: int):
    shape = f"[[16, 64], pl.{dtype}]"
    program = kernel({"a": shape}, [LOAD, f"u = pl.add(t, {number})", STORE], shape)
    found = only(program)
    bits = VectorType(found["type"]).bits
    assert holds(program, found) & ((1 << bits) - 1) == code


def test_an_integer_of_the_kernel_is_handed_on_in_its_register():
    shape = "[[16, 64], pl.INT32]"
    body = [LOAD, "u = pl.mul(t, s)", STORE]
    program = kernel({"a": shape, "s": "INT32"}, body, shape)
    found = only(program)
    (read,) = instructions(program, "ldparam")
    assert found["xs"] == read["xd"]


@pytest.mark.parametrize("comparison", Comparison, ids=lambda c: c.name)
def test_a_comparison_makes_a_byte_an_element(comparison: Comparison):
    body = [LOAD, f"m = pl.cmps(t, 0.5, cmp_type={comparison.value})", "u = pl.sel(m, t, t)", STORE]
    (found,) = instructions(kernel({"a": SHAPE}, body, SHAPE), "v_compare_scalar")
    assert found["op"] == VectorComparison[comparison.name.upper()]
    assert (found["dst_pitch"], found["a_pitch"]) == (2, 8)
    body[1] = f"m = pl.cmp(t, t, cmp_type={comparison.value})"
    (found,) = instructions(kernel({"a": SHAPE}, body, SHAPE), "v_compare")
    assert found["op"] == VectorComparison[comparison.name.upper()]
    assert (found["a"], found["b"]) == (0, 0)


def test_a_mask_of_few_columns_has_rows_of_32_bytes():
    body = [
        "t = pl.load(a, [0, 0], [16, 8])",
        "m = pl.cmps(t, 0.5)",
        "u = pl.sel(m, t, t)",
        "out = pl.store(u, [0, 0], out)",
    ]
    program = kernel({"a": SHAPE}, body, "[[16, 8], pl.FP32]")
    compare, choose = instructions(program, "v_compare_scalar", "v_select")
    assert (compare["dst_pitch"], choose["mask_pitch"]) == (1, 1)


def test_a_choice_copies_what_is_there_else_and_puts_the_chosen_on_top():
    body = [
        LOAD,
        "s = pl.neg(t)",
        "m = pl.cmps(t, 0.5)",
        "u = pl.sel(m, t, s)",
        "v = pl.add(s, t)",
        "out = pl.store(pl.add(u, v), [0, 0], out)",
    ]
    move, choose = instructions(kernel({"a": SHAPE}, body, SHAPE), "v_move", "v_select")
    negated, mask = 4096, 8192
    assert move["src"] == negated
    assert (choose["dst"], choose["src"], choose["mask"]) == (move["dst"], 0, mask)
    assert choose["invert"] == 0


def test_a_choice_of_a_scalar_fills_first():
    body = [LOAD, "m = pl.cmps(t, 0.5)", "u = pl.sels(m, t, 3.0)", STORE]
    fill, choose = instructions(kernel({"a": SHAPE}, body, SHAPE), "v_fill", "v_select")
    assert fill["dst"] == choose["dst"]
    assert (choose["src"], choose["invert"]) == (0, 0)


# --------------------------------------------------------------------------- casts and fills


@pytest.mark.parametrize("mode", CastMode, ids=lambda m: m.name)
def test_a_cast_names_both_types_and_the_rounding(mode: CastMode):
    found = only(one_op(f"pl.cast(t, pl.FP8E4M3FN, mode='{mode.name}')", "FP8E4M3FN"))
    assert found.mnemonic == "v_cast"
    assert found.fields == {
        "dst": 4096, "src": 0, "type": VectorType.FP32, "to": VectorType.E4M3,
        "mode": Rounding[mode.name.upper()], "rows": 16, "cols": 64,
        "dst_pitch": 2, "src_pitch": 8,
    }  # fmt: skip


def test_a_cast_that_there_is_not_is_a_chain():
    shape = "[[16, 64], pl.FP4]"
    body = [LOAD, "u = pl.cast(t, pl.FP8E4M3FN)", STORE]
    program = kernel({"a": shape}, body, "[[16, 64], pl.FP8E4M3FN]")
    found = instructions(program, "v_cast")
    assert [(VectorType(each["type"]), VectorType(each["to"])) for each in found] == [
        (VectorType.E2M1, VectorType.BF16),
        (VectorType.BF16, VectorType.FP32),
        (VectorType.FP32, VectorType.E4M3),
    ]
    assert [each["src_pitch"] for each in found] == [1, 4, 8]


def test_a_full_tile_is_filled_with_the_code_of_its_number():
    body = ["u = pl.full([16, 64], pl.FP16, 2.0)", STORE]
    program = kernel({}, body, "[[16, 64], pl.FP16]")
    found = only(program)
    assert found.mnemonic == "v_fill"
    assert found["dst_pitch"] == 4
    assert holds(program, found) == 0x4000


def test_a_made_tile_is_zero_where_somebody_reads_it():
    found = only(kernel({}, ["u = pl.create_tile([16, 64], pl.FP32)", STORE], SHAPE))
    assert found.mnemonic == "v_fill"


def test_scratch_needs_no_content():
    body = [
        LOAD,
        "tmp = pl.create_tile([16, 64], pl.FP32)",
        "u = pl.tile.rsqrt(t, tmp)",
        STORE,
    ]
    assert only(kernel({"a": SHAPE}, body, SHAPE)).mnemonic == "v_unary"
