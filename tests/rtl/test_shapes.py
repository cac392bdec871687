"""The widths that the tables give."""

import pytest
from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from scalebox.codegen.isa.scale_unit import HALF, REQUEST, START
from scalebox.ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS, GROUP, box_byte
from scalebox.rtl import shapes


def test_a_box_is_sixteen_rows_of_two_groups_of_32() -> None:
    assert (BOX_ROWS, BOX_GROUPS, GROUP, BOX_BYTES) == (16, 2, 32, 32)
    assert [box_byte(0, 0), box_byte(0, 1), box_byte(1, 0), box_byte(15, 1)] == [0, 1, 2, 31]


def test_e8m0_gives_the_constants_of_the_hardware() -> None:
    assert (shapes.BIAS, shapes.NAN_CODE) == (127, 255)
    assert unsigned(8) == shapes.CODE
    assert signed(9) == shapes.EXPONENT
    assert signed(10) == shapes.COMBINED_EXPONENT


def test_words_lie_on_the_wires_as_their_tables_say() -> None:
    start = shapes.word_layout(START)
    assert [(name, start[name].offset, start[name].width) for name, _ in start] == [
        ("row_tiles", 0, 9),
        ("column_tiles", 9, 9),
        ("groups", 18, 8),
        ("paired", 26, 1),
    ]
    assert shapes.word_layout(REQUEST).size == 8 + 6
    half = shapes.word_layout(HALF)
    assert half.size == 16 * (9 + 9 + 1 + 1)
    assert half["b_nan"].offset == 16 * (9 + 9 + 1)
    assert half["a_exponent"].shape == data.ArrayLayout(signed(9), 16)
    assert shapes.beat_layout(8).size == 64


def test_a_record_is_its_fields_two_halves_and_combined_pairs_where_asked_for() -> None:
    record = shapes.record_layout()
    assert record.size == 7 + 3 + 2 * 320
    assert (record["group"].offset, record["end"].offset, record["halves"].offset) == (0, 9, 10)
    combined = shapes.record_layout(combined=True)
    assert combined.size == record.size + 2 * 256 * (10 + 1)
    assert combined["combined"].offset == record.size
    assert combined["halves"] == record["halves"]


@pytest.mark.parametrize(
    ("value", "kind", "sentence"),
    [
        (0, ValueError, "a beat must be one of 8, 16, 32, not 0"),
        (64, ValueError, "a beat must be one of 8, 16, 32, not 64"),
        (8.0, TypeError, "a beat must be an integer, not 8.0"),
        (True, TypeError, "a beat must be an integer, not True"),
    ],
)
def test_check_beat_bytes_refuses(value: object, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        shapes.check_beat_bytes("a beat", value)
    assert str(caught.value) == sentence


def test_check_flag_refuses_what_only_looks_like_one() -> None:
    assert shapes.check_flag("it", True)
    with pytest.raises(TypeError, match=r"^it must be True or False, not 0$"):
        shapes.check_flag("it", 0)
