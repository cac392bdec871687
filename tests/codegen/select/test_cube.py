"""Selection for the cube core beside plain block-scaled matrices: fields by hand arithmetic."""

from collections.abc import Callable

import pytest

from scalebox.codegen.executable import Executable
from scalebox.codegen.isa.program import Instruction
from scalebox.codegen.isa.vocabulary import ElementType, FixConvert, MadInit, PlainType
from scalebox.ir.errors import UserError

from ..sync.flag_checker import judge

Compile = Callable[[str], Executable]

HEAD = """
from scalebox.ir import language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, {params}):
"""
PLAIN = """
        a1 = pl.load(a, [0, 0], [{m}, {k}], [{vm}, {vk}])
        b1 = pl.load(b, [0, 0], [{k}, {n}], [{vk}, {vn}])
        al = pl.move(a1, target_memory=pl.Mem.Left)
        bl = pl.move(b1, target_memory=pl.Mem.Right)
"""
SCALED = """
        al = pl.load(a, [0, 0], [{m}, {k}], [{vm}, {vk}])
        sal = pl.load(sa, [0, 0], [{m}, {g}])
        bl = pl.load(b, [0, 0], [{k}, {n}], [{vk}, {vn}])
        sbl = pl.load(sb, [0, 0], [{g}, {n}])
"""
STORE = """
        c = pl.store(acc, [0, 0], c)
        return c
"""


def source(body: str, **given: object) -> str:
    numbers: dict[str, object] = {"m": 32, "k": 128, "n": 64, "a": "FP8E4M3FN", "out": "FP32"}
    numbers |= given
    numbers = {"vm": numbers["m"], "vk": numbers["k"], "vn": numbers["n"]} | numbers
    numbers = {"b": numbers["a"], "g": int(str(numbers["k"])) // 32} | numbers
    row = ", pl.MX_A_ZZ" if numbers["m"] != 1 else ""
    params = (
        f"a: pl.Tensor[[{{m}}, {{k}}], pl.{{a}}], sa: pl.Tensor[[{{m}}, {{g}}], pl.FP8E8M0{row}], "
        "b: pl.Tensor[[{k}, {n}], pl.{b}], sb: pl.Tensor[[{g}, {n}], pl.FP8E8M0, pl.MX_B_NN], "
        "z: pl.Tensor[[1, {n}], pl.{out}], c: pl.InOut[pl.Tensor[[{m}, {n}], pl.{out}]], "
        "s: pl.Scalar[pl.INDEX]"
    )
    return (HEAD.format(params=params) + body).format(**numbers)


def found(compiled: Compile, text: str) -> list[Instruction]:
    (kernel,) = compiled(text).kernels
    assert judge(kernel.program, kernel.views, [1]).sound
    return list(kernel.program)


def named(program: list[Instruction], mnemonic: str) -> list[dict[str, int]]:
    return [dict(each.fields) for each in program if each.mnemonic == mnemonic]


# --------------------------------------------------------------------------- products

KINDS = {
    "FP16": PlainType.FP16,
    "BF16": PlainType.BF16,
    "FP32": PlainType.FP32,
    "FP8E4M3FN": PlainType.E4M3,
    "FP8E5M2": PlainType.E5M2,
    "INT8": PlainType.INT8,
}


@pytest.mark.parametrize("dtype", KINDS)
def test_a_product_without_scales_is_a_mad_of_its_types(compiled: Compile, dtype: str) -> None:
    out = "INT32" if dtype == "INT8" else "FP32"
    body = PLAIN + "        acc = pl.matmul(al, bl)\n" + STORE
    program = found(compiled, source(body, a=dtype, out=out, vm=17, vk=70, vn=33))
    (mad,) = named(program, "mad")
    kind = KINDS[dtype]
    assert mad == {
        "c": 0, "a": 0, "b": 0, "bias": 0, "m": 17, "k": 70, "n": 33, "a_type": kind, "b_type": kind,
        "init": MadInit.ZERO,
    }  # fmt: skip
    assert not named(program, "l1_fill")
    wide = 256 // kind.bits
    (left,), (right,) = named(program, "l1_to_l0a"), named(program, "l1_to_l0b")
    assert (left["row_boxes"], left["col_boxes"], left["src_pitch"]) == (2, -(-70 // wide), 2)
    assert (right["bits"], right["k"], right["n"], right["src_k"]) == (kind.bits, 70, 33, 128)


def test_the_two_formats_of_8_bits_are_multiplied_with_each_other(compiled: Compile) -> None:
    body = PLAIN + "        acc = pl.matmul(al, bl)\n" + STORE
    (mad,) = named(found(compiled, source(body, b="FP8E5M2")), "mad")
    assert (mad["a_type"], mad["b_type"]) == (PlainType.E4M3, PlainType.E5M2)


def test_a_sum_starts_from_biases_or_goes_on_in_its_own_place(compiled: Compile) -> None:
    body = (
        PLAIN
        + """
        zl = pl.load(z, [0, 0], [1, {n}])
        acc = pl.matmul_bias(al, bl, zl)
        acc = pl.matmul_acc(acc, al, bl)
"""
        + STORE
    )
    program = found(compiled, source(body, a="INT8", out="INT32"))
    start, more = named(program, "mad")
    assert (start["init"], more["init"]) == (MadInit.BIAS, MadInit.ACC)
    assert start["c"] == more["c"]
    assert named(program, "l1_to_bias")[0]["bytes"] == 64 * 4


LOOP = """
        acc = pl.create_tile([{m}, {n}], pl.FP32, target_memory=pl.Mem.Acc)
        for i in pl.range(0, 4):
            al = pl.move(pl.load(a, [0, 0], [{m}, {k}]), target_memory=pl.Mem.Left)
            bl = pl.move(pl.load(b, [0, 0], [{k}, {n}]), target_memory=pl.Mem.Right)
            acc = pl.matmul_acc(acc, al, bl, init_cond=CONDITION)
"""


def test_a_condition_that_a_loop_decides_goes_to_the_mad_in_a_register(compiled: Compile) -> None:
    program = found(compiled, source(LOOP.replace("CONDITION", "(i == 0)") + STORE, a="FP16"))
    (mad,) = named(program, "mad_if")
    (asked,) = [each for each in program if each.mnemonic == "cmpeqi"]
    assert mad["xz"] == asked["xd"]
    assert (mad["m"], mad["k"], mad["n"]) == (32, 128, 64)
    assert mad["a_type"] == mad["b_type"] == PlainType.FP16
    assert not named(program, "mad")


@pytest.mark.parametrize(("condition", "init"), [("True", MadInit.ZERO), ("False", MadInit.ACC)])
def test_a_condition_that_is_known_is_a_field_of_the_mad(
    compiled: Compile, condition: str, init: MadInit
) -> None:
    program = found(compiled, source(LOOP.replace("CONDITION", condition) + STORE, a="FP16"))
    assert [mad["init"] for mad in named(program, "mad")] == [init]
    assert not named(program, "mad_if")


# --------------------------------------------------------------------------- one row


@pytest.mark.parametrize(("dtype", "units"), [("FP16", 5), ("FP32", 9), ("INT8", 3)])
def test_a_row_in_l1_has_no_boxes_and_in_l0a_one_line_of_each(
    compiled: Compile, dtype: str, units: int
) -> None:
    out = "INT32" if dtype == "INT8" else "FP32"
    body = PLAIN + "        acc = pl.gemv(al, bl)\n" + STORE
    program = found(compiled, source(body, m=1, a=dtype, out=out, vk=66))
    assert named(program, "gm_to_l1_row")[0]["cols"] == 66
    (move,) = named(program, "l1_to_l0a_row")
    assert (move["src"], move["dst"], move["units"]) == (0, 0, units)
    (mad,) = named(program, "mad")
    assert (mad["m"], mad["k"], mad["n"], mad["init"]) == (1, 66, 64, MadInit.ZERO)


def test_a_row_with_scales_brings_a_plain_row_of_them(compiled: Compile) -> None:
    body = (
        SCALED
        + """
        zl = pl.load(z, [0, 0], [1, {n}])
        acc = pl.gemv_mx_bias(al, sal, bl, sbl, zl)
        acc = pl.gemv_mx_acc(acc, al, sal, bl, sbl)
"""
        + STORE
    )
    program = found(compiled, source(body, m=1, vk=72))
    first, second = named(program, "mad_mx")
    assert (first["init"], second["init"]) == (MadInit.BIAS, MadInit.ACC)
    assert (first["m"], first["k"], first["a_type"]) == (1, 72, ElementType.E4M3)
    moves = named(program, "l1_to_scale_a_row")
    assert {(move["dst"], move["groups"]) for move in moves} == {(first["a"] >> 4, 3)}
    assert named(program, "l1_to_l0a_row")[0]["units"] == 4


# --------------------------------------------------------------------------- fills


def fills(compiled: Compile, **given: object) -> list[dict[str, int]]:
    body = SCALED + "        acc = pl.matmul_mx(al, sal, bl, sbl)\n" + STORE
    return [
        {name: fill[name] for name in ("l1", "lines", "units", "pitch")}
        for fill in named(found(compiled, source(body, **given)), "l1_fill")
    ]


def test_k_that_ends_in_the_first_box_of_a_step_is_filled_up_on_both_sides(
    compiled: Compile,
) -> None:
    # Of A [32, 128] columns 96 to 127 of the 17 valid rows, a unit each; of B [128, 64], which
    # begins behind 32 x 128 bytes of A and a box of scales, rows 72 to 127 in both columns of boxes.
    left, right = fills(compiled, vm=17, vk=72)
    assert left == {"l1": 3 * 32 * 32, "lines": 1, "units": 17, "pitch": 32}
    begin = right["l1"] - 72 * 32
    assert begin % 512 == 0
    assert right == {"l1": begin + 72 * 32, "lines": 2, "units": 56, "pitch": 128}


@pytest.mark.parametrize("vk", [33, 64, 100, 128])
def test_k_that_ends_in_the_last_box_of_a_step_needs_no_fill(compiled: Compile, vk: int) -> None:
    assert not fills(compiled, vk=vk)


@pytest.mark.parametrize("vk", [2, 30, 64, 72])
def test_elements_of_4_bits_need_no_fill(compiled: Compile, vk: int) -> None:
    assert not fills(compiled, a="FP4", vk=vk)


def test_moves_take_what_was_filled(compiled: Compile) -> None:
    body = SCALED + "        acc = pl.matmul_mx(al, sal, bl, sbl)\n" + STORE
    for valid, moved in ((72, 128), (100, 100)):
        program = found(compiled, source(body, vk=valid))
        assert sum(move["col_boxes"] for move in named(program, "l1_to_l0a")) == 4
        assert sum(move["k"] for move in named(program, "l1_to_l0b")) == moved


def test_one_row_is_filled_one_unit_a_box(compiled: Compile) -> None:
    body = SCALED + "        acc = pl.gemv_mx(al, sal, bl, sbl)\n" + STORE
    program = found(compiled, source(body, m=1, vk=8))
    left = named(program, "l1_fill")[0]
    assert (left["l1"], left["lines"], left["units"]) == (32, 1, 1)
    assert named(program, "l1_to_l0a_row")[0]["units"] == 2


# --------------------------------------------------------------------------- stores


def test_integers_are_stored_as_they_stand(compiled: Compile) -> None:
    body = PLAIN + "        acc = pl.matmul(al, bl)\n" + STORE
    program = found(compiled, source(body, a="INT8", out="INT32", vm=17, vn=33))
    (store,) = named(program, "l0c_to_gm_fix")
    assert (store["rows"], store["cols"], store["src_boxes"]) == (17, 33, 2)
    assert (store["convert"], store["relu"]) == (FixConvert.INT32, 0)
    assert not named(program, "l0c_to_gm")


@pytest.mark.parametrize(
    ("out", "convert"),
    [("FP32", FixConvert.FP32), ("BF16", FixConvert.BF16), ("FP16", FixConvert.FP16)],
)
def test_a_relu_is_done_on_the_way_out(compiled: Compile, out: str, convert: FixConvert) -> None:
    body = (
        PLAIN + "        acc = pl.matmul(al, bl)\n" + STORE.replace(", c)", ", c, pre_relu=True)")
    )
    (store,) = named(found(compiled, source(body, a="FP16", out=out, vm=17)), "l0c_to_gm_fix")
    assert (store["convert"], store["relu"], store["src_boxes"]) == (convert, 1, 2)


@pytest.mark.parametrize(
    ("out", "convert"),
    [
        ("FP32", FixConvert.FP32),
        ("BF16", FixConvert.BF16),
        ("FP8E4M3FN", FixConvert.E4M3),
        ("FP8E5M2", FixConvert.E5M2),
        ("INT8", FixConvert.INT8),
        ("UINT8", FixConvert.UINT8),
    ],
)
@pytest.mark.parametrize("relu", [False, True])
def test_sums_are_scaled_on_the_way_out(
    compiled: Compile, out: str, convert: FixConvert, relu: bool
) -> None:
    """-0.375 is 0xBEC00000 in FP32."""
    store = STORE.replace(", c)", f", c, pre_quant=-0.375, pre_relu={relu})")
    body = PLAIN + "        acc = pl.matmul(al, bl)\n" + store
    (step,) = named(found(compiled, source(body, a="FP16", out=out, vm=17)), "l0c_to_gm_quant")
    assert (step["scale"], step["convert"], step["relu"]) == (0xBEC00000, convert, int(relu))
    assert step["src_boxes"] == 2


@pytest.mark.parametrize("dtype", ["FP16", "INT8"])
def test_an_accumulator_is_read_with_the_pitch_of_its_valid_rows(
    compiled: Compile, dtype: str
) -> None:
    """64 rows of which 16 are valid: the mad wrote columns of boxes 16 rows apart."""
    out = "INT32" if dtype == "INT8" else "FP32"
    body = PLAIN + "        acc = pl.matmul(al, bl)\n" + STORE
    program = found(compiled, source(body, a=dtype, out=out, m=64, vm=16))
    if dtype == "INT8":
        assert named(program, "l0c_to_gm_fix")[0]["src_boxes"] == 1
    else:
        assert named(program, "l0c_to_gm")[0]["src_rows"] == 16


# --------------------------------------------------------------------------- refusals

MIXED = "lhs and rhs must be both from {E4M3, E5M2} or both from {E2M1, E1M2}, not E2M1 and E4M3"
SETS = "{Float16}, {BFloat16}, {Float32}, {E4M3, E5M2}, {Int8}"


@pytest.mark.parametrize(
    ("body", "given", "message", "hint"),
    [
        (
            SCALED + "        acc = pl.matmul_mx(al, sal, bl, sbl)\n",
            {"a": "FP4", "b": "FP8E4M3FN"},
            MIXED,
            "cast the 4-bit operand to E4M3 first (pl.cast)",
        ),
        (
            PLAIN + "        acc = pl.matmul(al, bl)\n",
            {"a": "INT8", "b": "FP16"},
            f"lhs and rhs must be both from one of {SETS}, not Int8 and Float16",
            "one that leaves Acc becomes what pl.move(…, target_memory=pl.Mem.Mat, dtype=…) says",
        ),
        (
            PLAIN + "        acc = pl.matmul(al, bl)\n",
            {"a": "FP4"},
            f"lhs and rhs must be both from one of {SETS}, not E2M1 and E2M1",
            "MX elements are multiplied by pl.matmul_mx",
        ),
        (
            PLAIN + "        acc = pl.gemv(al, bl)\n",
            {"a": "FP16"},
            "lhs must be a row [1, K], not [32, 128]",
            "pl.matmul and pl.matmul_mx take a matrix",
        ),
        (
            PLAIN + "        acc = pl.matmul(al, bl)\n",
            {"a": "FP16", "m": 8},
            "the physical M must be a multiple of 16, not 8",
            "load a larger window and narrow it by valid_shape",
        ),
        (
            PLAIN
            + "        acc = pl.matmul(al, bl)\n        c = pl.store(acc, [0, 0], c, pre_relu=True)\n",
            {"a": "INT8", "out": "INT32"},
            "pre_relu must be for a tile of Float32 in Acc, not of Int32 in Acc",
            "pl.relu takes a tile in Vec",
        ),
        (
            "        acc = pl.load(z, [0, 0], [1, {n}], target_memory=pl.Mem.Vec)\n"
            "        c = pl.store(acc, [0, 0], c, pre_relu=True)\n",
            {"m": 1},
            "pre_relu must be for a tile of Float32 in Acc, not of Float32 in Vec",
            "pl.relu takes a tile in Vec",
        ),
        (
            PLAIN
            + "        acc = pl.matmul(al, bl)\n        c = pl.store(acc, [0, 0], c, pre_quant=0.5)\n",
            {"a": "INT8", "out": "INT32"},
            "pre_quant must be for a tile of Float32 in Acc, not of Int32 in Acc",
            "pl.mul and pl.cast take a tile in Vec",
        ),
        (
            PLAIN
            + "        acc = pl.matmul(al, bl)\n        c = pl.store(acc, [0, 0], c, pre_quant=1e39)\n",
            {"a": "FP16"},
            "pre_quant must be a finite number of Float32, not 1e+39",
            "sums are multiplied by it",
        ),
        (
            PLAIN
            + "        acc = pl.matmul(al, bl)\n        c = pl.store(acc, [0, 0], c, pre_quant=True)\n",
            {"a": "FP16"},
            "pre_quant must be a finite number of Float32, not True",
            "sums are multiplied by it",
        ),
        (
            PLAIN + "        acc = pl.matmul(al, bl)\n",
            {"a": "FP16", "out": "INT8"},
            "a tile of Float32 in Acc must be stored as Float32, BFloat16, Float16, not into a tensor "
            "of Int8",
            "pre_quant=, a number by which sums are multiplied, stores them in 8 bits",
        ),
        (
            PLAIN + "        acc = pl.matmul(al, bl)\n",
            {"a": "INT8", "out": "FP32"},
            "a tile of Int32 in Acc must be stored as Int32, not into a tensor of Float32",
            "",
        ),
    ],
)
def test_what_the_cube_does_not_multiply_is_refused_with_the_way_out(
    compiled: Compile, body: str, given: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(UserError) as caught:
        compiled(source(body + STORE, **given))
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
