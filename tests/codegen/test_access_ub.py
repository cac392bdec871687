"""What instructions around UB touch: by hand for the ways in and out, else as the machine has it."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from scalebox.codegen.access import accesses
from scalebox.codegen.access_ub import AROUND_UB
from scalebox.codegen.isa.row import Row
from scalebox.codegen.isa.table import BY_MNEMONIC
from scalebox.codegen.isa.vocabulary import (
    ADDRESS_BITS,
    Axis,
    ElementType,
    FieldKind,
    FixConvert,
    Space,
    VectorBinary,
    VectorType,
)
from scalebox.codegen.tensors import Layout, View
from scalebox.codegen.tree import Region
from scalebox.ir.expr import index
from scalebox.sim.vector.tiles import Tile, tiles_of

VIEWS = (
    View(3, Layout.ND, 16, (4096, 4096), (4096, 1)),
    View(4, Layout.MX_A_ZZ, 8, (1, 64, 64, 16, 2), (131072, 2048, 32, 2, 1)),
)
ON_TILES = [BY_MNEMONIC[name] for name in sorted(AROUND_UB) if name.startswith("v_")]
STILL = [row for row in ON_TILES if row.mnemonic != "v_move_at"]
TENSOR = Region(Space.GM, 0, 1, 3)


def ub(begin: int, end: int) -> Region:
    return Region(Space.UB, begin, end)


# --------------------------------------------------------------------------- in and out


def test_a_load_touches_the_tile_from_its_first_row_to_its_last_one():
    # Row 2 begins at 64 + 2 * 4 * 32 = 320; 20 halves are 40 bytes, in two units of 32.
    tile = {"view": 0, "ub": 64, "rows": 3, "cols": 20, "pitch": 4}
    assert accesses("gm_to_ub", tile, VIEWS) == ((TENSOR,), (ub(64, 384),))
    assert accesses("ub_to_gm", tile, VIEWS) == ((ub(64, 384),), (TENSOR,))


def test_a_packed_column_has_its_elements_one_behind_the_other():
    tile = {"view": 0, "ub": 32, "rows": 33, "cols": 1, "pitch": 0}
    assert accesses("gm_to_ub", tile, VIEWS)[1] == (ub(32, 32 + 96),)


def test_boxes_in_ub_stand_in_rows_of_boxes():
    boxes = {"view": 1, "ub": 32, "ni": 3, "nj": 2, "ub_nj": 5}
    reads, writes = accesses("ub_to_gm_boxes", boxes, VIEWS)
    assert reads == (ub(32, 32 + (2 * 5 + 2) * 32),)
    assert writes == (Region(Space.GM, 0, 1, 4),)


def test_lines_go_to_l1_at_a_pitch_of_their_own():
    lines = {"ub": 64, "l1": 512, "lines": 3, "units": 2, "ub_pitch": 4, "l1_pitch": 7}
    reads, writes = accesses("ub_to_l1", lines, VIEWS)
    assert reads == (ub(64, 64 + (2 * 4 + 2) * 32),)
    assert writes == (Region(Space.L1, 512, 512 + (2 * 7 + 2) * 32),)


def test_boxes_in_l1_end_with_the_last_row_of_the_last_column_of_boxes():
    # 40 bytes a row of 8-bit elements are two columns of boxes, 48 rows of 32 bytes apart.
    tile = {"ub": 0, "l1": 512, "bits": 8, "rows": 20, "cols": 40, "l1_rows": 48, "pitch": 2}
    reads, writes = accesses("ub_to_l1_nz", tile, VIEWS)
    assert reads == (ub(0, 19 * 64 + 64),)
    assert writes == (Region(Space.L1, 512, 512 + (48 + 20) * 32),)


def test_the_fixpipe_reads_columns_of_sums_and_writes_rows():
    # 20 columns are two columns of boxes, 3 boxes of 16 rows of 64 bytes apart.
    fields = {"l0c": 1024, "ub": 96, "rows": 33, "cols": 20, "src_boxes": 3, "pitch": 2}
    fields |= {"convert": FixConvert.BF16, "relu": 0, "core": 0}
    reads, writes = accesses("l0c_to_ub", fields, VIEWS)
    assert reads == (Region(Space.L0C, 1024, 1024 + (48 + 33) * 64),)
    assert writes == (ub(96, 96 + 32 * 64 + 64),)


# --------------------------------------------------------------------------- on tiles


def drawn(data: st.DataObject, row: Row) -> dict[str, int]:
    """Return values for the fields of an instruction that keep its rules, registers left out."""
    shape = {"rows": data.draw(st.integers(1, 40)), "cols": data.draw(st.integers(1, 4)) * 32}
    fields: dict[str, int] = {}
    for each in row.fields:
        match each.kind:
            case FieldKind.REG:
                continue
            case FieldKind.ADDR:
                fields[each.name] = data.draw(st.integers(0, 50)) * 32
            case FieldKind.ENUM:
                assert each.enum is not None
                fields[each.name] = data.draw(st.sampled_from([int(m) for m in each.enum]))
            case _ if each.name.endswith("pitch"):
                fields[each.name] = data.draw(st.integers(32, 40))
            case _:
                fields[each.name] = shape.get(each.name, 0)
    assume(row.complaint(tuple(fields.get(each.name, 0) for each in row.fields)) is None)
    return fields


def whole(tile: Tile) -> Region:
    begin, size = tile.extent
    return ub(begin - begin % 32, -(-(begin + size) // 32) * 32)


@pytest.mark.parametrize("row", STILL, ids=lambda r: r.mnemonic)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_every_tile_that_the_machine_works_on_is_touched(row: Row, data: st.DataObject):
    fields = drawn(data, row)
    tiles = [whole(tile) for tile in tiles_of(row.mnemonic, fields)]
    outputs = 2 if row.mnemonic == "v_quant_mx" else 1
    reads, writes = accesses(row.mnemonic, fields, VIEWS)
    assert set(writes) == set(tiles[:outputs])
    expected = set(tiles[outputs:])
    if row.mnemonic == "v_select":
        expected |= set(tiles[:1])
    if row.mnemonic == "v_expand" and fields["op"] == VectorBinary.SECOND:
        expected = {tiles[1]}
    assert set(reads) == expected


def test_what_stands_before_the_first_element_of_its_unit_is_touched_with_it():
    fields = {"src": 64, "dst": 128, "type": VectorType.FP16, "dst_skip": 3, "src_skip": 15}
    fields |= {"rows": 2, "cols": 2, "dst_pitch": 1, "src_pitch": 2}
    reads, writes = accesses("v_move", fields, VIEWS)
    assert reads == (ub(64, 64 + 30 + 64 + 4 + 30),)
    assert writes == (ub(128, 128 + 64),)


def test_a_move_whose_places_registers_say_may_touch_all_of_ub():
    reads, writes = accesses("v_move_at", {"xo": index(0), "xt": index(0)}, VIEWS)
    assert reads == writes == (ub(0, 1 << ADDRESS_BITS[Space.UB]),)


@pytest.mark.parametrize("axis", Axis)
def test_a_reduction_writes_one_element_a_line(axis: Axis):
    fields = {"src": 0, "dst": 4096, "op": 0, "axis": axis, "type": VectorType.FP32}
    fields |= {"rows": 9, "cols": 17, "src_pitch": 3}
    _, writes = accesses("v_reduce", fields, VIEWS)
    assert writes == (ub(4096, 4096 + (64 if axis is Axis.ROW else 96)),)


def test_codes_of_four_bits_take_half_a_byte_and_scales_a_byte_a_group():
    fields = {"dst": 0, "src": 4096, "scales": 8192, "type": 2, "element": ElementType.E2M1}
    fields |= {"rule": 0, "rows": 2, "cols": 64, "dst_pitch": 2, "src_pitch": 4, "scale_pitch": 1}
    reads, writes = accesses("v_quant_mx", fields, VIEWS)
    assert reads == (ub(4096, 4096 + 256),)
    assert writes == (ub(0, 64 + 32), ub(8192, 8192 + 64))
