"""What an instruction touches, against the manual's formula for every element."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.access import accesses
from scalebox.codegen.access_ub import AROUND_UB
from scalebox.codegen.isa.program import make
from scalebox.codegen.isa.row import Row
from scalebox.codegen.isa.table import AT, BY_MNEMONIC, ROWS
from scalebox.codegen.isa.vocabulary import (
    ADDRESS_BITS,
    Convert,
    ElementType,
    FixConvert,
    FixScale,
    MadInit,
    PlainType,
    ScaleRows,
    Space,
)
from scalebox.codegen.tensors import Layout, View
from scalebox.codegen.tree import Region
from scalebox.ir.expr import index

from .sync.flag_checker import GRANULE, local_bytes

VIEWS = (
    View(0, Layout.ND, 8, (4096, 4096), (4096, 1)),
    View(1, Layout.ND, 4, (4096, 4096), (4096, 1)),
    View(2, Layout.ND, 32, (4096, 4096), (4096, 1)),
    View(3, Layout.MX_A_ZZ, 8, (1, 64, 64, 16, 2), (131072, 2048, 32, 2, 1)),
    View(4, Layout.NZ, 16, (1, 64, 64, 16, 16), (1048576, 16384, 256, 16, 1)),
    View(5, Layout.ND, 8, (1, 1, 512, 512, 2), (524288, 524288, 1024, 2, 1)),
)
_SMALL = st.integers(1, 5)
_BOXES = st.integers(0, 6)
FEW = st.integers(1, 80)


@st.composite
def loads(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    rows = draw(FEW)
    return "gm_to_l1_nz", {
        "view": draw(st.integers(0, 2)),
        "l1": draw(_BOXES) * 512,
        "rows": rows,
        "cols": draw(st.integers(1, 300)),
        "l1_rows": (-(-rows // 16) + draw(st.integers(0, 2))) * 16,
    }


@st.composite
def box_loads(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    nj = draw(_SMALL)
    fields = {"view": 3, "l1": draw(_BOXES) * 32, "ni": draw(_SMALL), "nj": nj}
    return "gm_to_l1_boxes", fields | {"l1_nj": nj + draw(st.integers(0, 2))}


@st.composite
def nz_box_loads(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    rows = draw(_SMALL)
    fields = {"view": 4, "l1": draw(_BOXES) * 512, "col_boxes": draw(_SMALL), "row_boxes": rows}
    return "gm_to_l1_nz_boxes", fields | {"dst_pitch": rows + draw(st.integers(0, 2))}


@st.composite
def scale_loads(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    layout, rows, pairs = draw(st.sampled_from(ScaleRows)), draw(_SMALL) * 16, draw(_SMALL)
    ni, nj = (rows, pairs) if layout in (ScaleRows.A_ND, ScaleRows.B_DN) else (pairs, rows)
    fields = {"view": 5, "l1": draw(_BOXES) * 32, "layout": layout, "ni": ni, "nj": nj}
    return "gm_to_l1_scales", fields | {"l1_nj": pairs + draw(st.integers(0, 2))}


@st.composite
def left_moves(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    boxes = draw(_SMALL)
    return draw(st.sampled_from(("l1_to_l0a", "l1_to_l0b_boxes"))), {
        "src": draw(_BOXES) * 512,
        "dst": draw(_BOXES) * 512,
        "row_boxes": boxes,
        "col_boxes": draw(_SMALL),
        "src_pitch": boxes + draw(st.integers(0, 2)),
        "dst_pitch": boxes + draw(st.integers(0, 2)),
    }


@st.composite
def right_moves(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    k = draw(FEW)
    mnemonic, across = draw(st.sampled_from((("l1_to_l0b", "n"), ("l1_to_l0a_turned", "m"))))
    return mnemonic, {
        "src": draw(_BOXES) * 512,
        "dst": draw(_BOXES) * 512,
        "bits": draw(st.sampled_from((4, 8))),
        "k": k,
        across: draw(FEW),
        "src_k": (-(-k // 16) + draw(st.integers(0, 2))) * 16,
    }


@st.composite
def scale_moves(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    columns = draw(_SMALL)
    return draw(st.sampled_from(("l1_to_scale_a", "l1_to_scale_b"))), {
        "src": draw(_BOXES) * 32,
        "dst": draw(_BOXES) * 32,
        "row_boxes": draw(_SMALL),
        "col_boxes": columns,
        "src_pitch": columns + draw(st.integers(0, 2)),
    }


@st.composite
def products(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    kind = draw(st.sampled_from((ElementType.E4M3, ElementType.E2M1)))
    init = draw(st.sampled_from(MadInit))
    return "mad_mx", {
        "c": draw(_BOXES) * 1024,
        "a": draw(_BOXES) * 512,
        "b": draw(_BOXES) * 512,
        "bias": draw(_BOXES) * 32 if init is MadInit.BIAS else 0,
        "m": draw(FEW),
        "k": draw(st.integers(1, 200)),
        "n": draw(FEW),
        "a_type": kind,
        "b_type": kind,
        "init": init,
    }


@st.composite
def stores(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    rows = draw(FEW)
    return "l0c_to_gm", {
        "view": 2,
        "l0c": draw(_BOXES) * 1024,
        "rows": rows,
        "cols": draw(FEW),
        "src_rows": (-(-rows // 16) + draw(st.integers(0, 2))) * 16,
        "convert": Convert.FP32,
    }


@st.composite
def plain_products(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    _, fields = draw(products())
    mnemonic, kind = draw(st.sampled_from(("mad", "mad_if"))), draw(st.sampled_from(PlainType))
    fields |= {"a_type": kind, "b_type": kind}
    if mnemonic == "mad_if":
        fields = {name: value for name, value in fields.items() if name not in ("bias", "init")}
    return mnemonic, fields


@st.composite
def integer_stores(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    _, fields = draw(stores())
    boxes = fields.pop("src_rows") // 16
    return "l0c_to_gm_fix", fields | {"src_boxes": boxes, "relu": 0, "convert": FixConvert.INT32}


@st.composite
def scaled_stores(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    names = ("l0c_to_gm_columns", "l0c_to_gm_nz", "l0c_to_l1", "l0c_to_l1_quant")
    mnemonic = draw(st.sampled_from(names))
    rows, cols = draw(FEW), draw(_SMALL) * 16
    quant = draw(st.sampled_from(FixScale))
    if mnemonic == "l0c_to_gm_columns" or (mnemonic == "l0c_to_gm_nz" and quant == FixScale.NUMBER):
        quant = FixScale.COLUMNS
    fields = {
        "l0c": draw(_BOXES) * 1024,
        "rows": rows,
        "cols": cols,
        "src_boxes": -(-rows // 16) + draw(st.integers(0, 2)),
        "convert": FixConvert.BF16,
        "relu": draw(st.integers(0, 1)),
        "sums": 0,
        "scales": draw(_BOXES) * 32 if quant == FixScale.COLUMNS else 0,
    }
    match mnemonic:
        case "l0c_to_gm_columns":
            return mnemonic, fields | {"view": 2, "convert": FixConvert.FP32}
        case "l0c_to_gm_nz":
            return mnemonic, fields | {"view": 4, "quant": quant}
        case _:
            boxes = -(-rows // 16) + draw(st.integers(0, 2))
            fields |= {"l1": draw(_BOXES) * 32, "quant": quant, "l1_boxes": boxes}
            fields["convert"] = draw(st.sampled_from((FixConvert.E4M3, FixConvert.BF16)))
            row = BY_MNEMONIC[mnemonic]
            return mnemonic, {name: value for name, value in fields.items() if row.has(name)}


@st.composite
def fills(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    units = draw(_SMALL)
    fields = {"l1": draw(_BOXES) * 32, "lines": draw(_SMALL), "units": units}
    return "l1_fill", fields | {"pitch": units + draw(st.integers(0, 2))}


@st.composite
def row_moves(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    mnemonic, size = draw(
        st.sampled_from((("l1_to_l0a_row", "units"), ("l1_to_scale_a_row", "groups")))
    )
    return mnemonic, {"src": draw(_BOXES) * 32, "dst": draw(_BOXES) * 512, size: draw(FEW)}


@st.composite
def row_loads(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    fields = {"view": draw(st.integers(0, 2)), "l1": draw(_BOXES) * 32}
    return "gm_to_l1_row", fields | {"cols": draw(st.integers(1, 300))}


@st.composite
def bias_moves(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    fields = {"src": draw(_BOXES) * 32, "dst": draw(_BOXES) * 32, "bytes": draw(FEW) * 4}
    return draw(st.sampled_from(("l1_to_bias", "l1_to_fixp"))), fields


INSTRUCTIONS = st.one_of(
    loads(), row_loads(), box_loads(), nz_box_loads(), left_moves(), right_moves(), scale_moves(), bias_moves(),
    products(), plain_products(), stores(), integer_stores(), scaled_stores(), scale_loads(), fills(), row_moves(),
)  # fmt: skip


def granules(regions: tuple[Region, ...]) -> set[tuple[str, int]]:
    return {
        (region.space.name.lower(), granule)
        for region in regions
        if region.space is not Space.GM
        for granule in range(region.begin // GRANULE, -(-region.end // GRANULE))
    }


@settings(max_examples=300)
@given(each=INSTRUCTIONS)
def test_the_bytes_are_those_of_the_formula_for_each_element(each: tuple[str, dict[str, int]]):
    mnemonic, fields = each
    reads, writes = accesses(mnemonic, fields, VIEWS)
    instruction = make(
        mnemonic,
        **fields,
        **{
            name: 0
            for name in ("xr", "xc", "xi", "xj", "xs", "xz")
            if BY_MNEMONIC[mnemonic].has(name)
        },
    )
    touched = local_bytes(instruction, VIEWS)
    for written, regions in ((False, reads), (True, writes)):
        expected = {
            (space, address // GRANULE)
            for space, addresses, is_write in touched
            if is_write is written
            for address in addresses
        }
        assert granules(regions) == expected


_PLAIN = {"l0c": 0, "rows": 16, "cols": 16, "src_boxes": 1}
_SCALED = _PLAIN | {"scales": 0, "quant": 2}
EXAMPLES = {
    "gm_to_l1_nz": {"view": 0, "l1": 0, "rows": 16, "cols": 32, "l1_rows": 16},
    "gm_to_l1_row": {"view": 0, "l1": 0, "cols": 32},
    "gm_to_l1_boxes": {"view": 3, "l1": 0, "ni": 1, "nj": 1, "l1_nj": 1},
    "gm_to_l1_nz_boxes": {"view": 4, "l1": 0, "col_boxes": 1, "row_boxes": 1, "dst_pitch": 1},
    "l1_to_l0a": dict.fromkeys(("row_boxes", "col_boxes", "src_pitch", "dst_pitch"), 1),
    "l1_to_l0b": {"bits": 8, "k": 32, "n": 16, "src_k": 32},
    "l1_to_scale_a": dict.fromkeys(("row_boxes", "col_boxes", "src_pitch"), 1),
    "l1_to_scale_b": dict.fromkeys(("row_boxes", "col_boxes", "src_pitch"), 1),
    "l1_to_bias": {"bytes": 64},
    "l1_to_fixp": {"bytes": 64},
    "gm_to_l1_scales": {"view": 5, "l1": 0, "layout": 0, "ni": 1, "nj": 1, "l1_nj": 1},
    "l1_to_l0b_boxes": dict.fromkeys(("row_boxes", "col_boxes", "src_pitch", "dst_pitch"), 1),
    "l1_to_l0a_turned": {"bits": 8, "k": 32, "m": 16, "src_k": 32},
    "l1_fill": {"l1": 0, "lines": 2, "units": 1, "pitch": 2},
    "l1_to_l0a_row": {"units": 2},
    "l1_to_scale_a_row": {"groups": 3},
    "mad_mx": {"m": 16, "k": 32, "n": 16},
    "mad": {"m": 16, "k": 32, "n": 16},
    "mad_if": {"m": 16, "k": 32, "n": 16},
    "l0c_to_gm_fix": {"view": 2, "l0c": 0, "rows": 16, "cols": 16, "src_boxes": 1},
    "l0c_to_gm_quant": {"view": 2, "l0c": 0, "rows": 16, "cols": 16, "src_boxes": 1},
    "l0c_to_gm_columns": _SCALED | {"view": 2},
    "l0c_to_gm_nz": _SCALED | {"view": 4},
    "l0c_to_l1": _PLAIN | {"l1": 0, "l1_boxes": 1, "convert": FixConvert.BF16},
    "l0c_to_l1_quant": _SCALED | {"l1": 0, "l1_boxes": 1, "convert": FixConvert.BF16},
    "l0c_to_gm": {"view": 2, "l0c": 0, "rows": 16, "cols": 16, "src_rows": 16},
}


COMPILED = [r for r in ROWS if r.mnemonic.removesuffix(AT) in EXAMPLES]
"""The instructions of the cube core; those around UB have rules and tests of their own."""


@pytest.mark.parametrize("row", COMPILED, ids=lambda r: r.mnemonic)
def test_every_instruction_touches_the_memories_of_its_row(row: Row):
    fields = {"src": 0, "dst": 0, "a": 0, "b": 0, "c": 0, "bias": 0, "a_type": ElementType.E4M3}
    found: list[set[Space]] = [set(), set()]
    for init in MadInit:
        example = EXAMPLES[row.mnemonic.removesuffix(AT)]
        touched = accesses(row.mnemonic, fields | {"init": init} | example, VIEWS)
        for spaces, regions in zip(found, touched, strict=True):
            spaces |= {region.space for region in regions}
    assert found == [set(row.reads), set(row.writes)]


def test_every_instruction_that_moves_data_has_a_rule():
    moving = {row.mnemonic for row in ROWS if row.reads or row.writes}
    assert moving == {row.mnemonic for row in COMPILED} | AROUND_UB
    with pytest.raises(AssertionError, match="has no rule for the bytes it touches"):
        accesses("halt", {}, VIEWS)


def test_gm_is_touched_as_a_whole_tensor():
    fields = {"view": 1, "xr": index(0), "xc": index(0), "l1": 0, "cols": 8}
    reads, _ = accesses("gm_to_l1_row", fields, VIEWS)
    assert reads == (Region(Space.GM, 0, 1, 1),)


@pytest.mark.parametrize("row", [r for r in COMPILED if r.has("xo")], ids=lambda r: r.mnemonic)
def test_where_a_register_says_what_of_l1_is_read_any_of_it_may_be(row: Row):
    fields = {"src": 512, "dst": 0, "xo": index(1)}
    plain = row.mnemonic.removesuffix(AT)
    reads, writes = accesses(row.mnemonic, fields | EXAMPLES[plain], VIEWS)
    assert reads == (Region(Space.L1, 0, 1 << ADDRESS_BITS[Space.L1]),)
    assert writes == accesses(plain, fields | EXAMPLES[plain], VIEWS)[1]


def test_boxes_side_by_side_are_one_region():
    fields = {"src": 0, "dst": 512, "row_boxes": 2, "col_boxes": 3, "src_pitch": 2, "dst_pitch": 4}
    reads, writes = accesses("l1_to_l0a", fields, VIEWS)
    assert reads == (Region(Space.L1, 0, 3072),)
    assert writes == tuple(
        Region(Space.L0A, 512 + column * 2048, 512 + column * 2048 + 1024) for column in range(3)
    )
