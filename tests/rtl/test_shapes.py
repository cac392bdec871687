"""The widths that the tables give."""

import pytest
from amaranth.hdl import signed, unsigned

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


def test_a_box_is_256_bits_and_a_decoded_one_320() -> None:
    assert shapes.box_layout().size == 32 * 8
    assert shapes.decoded_box_layout().size == 32 * 9 + 32
    assert shapes.box_layout(rows=2, groups=1).size == 2 * 8


def test_pack_box_puts_byte_0_into_the_low_bits() -> None:
    assert shapes.pack_box([0x11, 0x22, 0x33]) == 0x332211
    assert shapes.pack_box([0] * 31 + [0xFF]) == 0xFF << 248


def test_unpack_decoded_box_reads_signed_lanes_and_then_flags() -> None:
    # Two lanes: exponents -127 and 5 in nine bits each, then the flags 1 and 0.
    word = (-127 & 0x1FF) | (5 << 9) | (1 << 18)
    box = shapes.unpack_decoded_box(word, rows=2, groups=1)
    assert box.exponents == (-127, 5)
    assert box.is_nan == (True, False)


@pytest.mark.parametrize(
    ("value", "kind", "sentence"),
    [
        (0, ValueError, "rows must be at least 1, not 0"),
        (2.0, TypeError, "rows must be an integer, not 2.0"),
        (True, TypeError, "rows must be an integer, not True"),
    ],
)
def test_check_count_refuses(value: object, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        shapes.check_count("rows", value)
    assert str(caught.value) == sentence
