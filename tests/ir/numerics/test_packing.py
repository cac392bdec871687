import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir.dtypes import E1M2, DType, Float16, SimpleDType
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.numerics import decode, pack, unpack

NARROW = (DType.E2M1, E1M2, DType.E3M2, DType.E2M3, DType.E4M3)


def test_case_c1_the_low_nibble_comes_first() -> None:
    codes = unpack(np.array([0x21], np.uint8), DType.E2M1, 2)
    assert decode(codes, DType.E2M1).tolist() == [0.5, 1.0]
    assert pack(np.array([1, 2], np.uint8), DType.E2M1).tolist() == [0x21]


def test_four_6_bit_codes_fill_three_bytes() -> None:
    codes = [0b000001, 0b100010, 0b110011, 0b101010]
    stream = sum(code << (6 * i) for i, code in enumerate(codes))
    assert pack(codes, DType.E3M2).tolist() == list(stream.to_bytes(3, "little"))


@given(st.data())
def test_a_stream_of_bits(data: st.DataObject) -> None:
    dtype: SimpleDType = data.draw(st.sampled_from(NARROW))
    codes = data.draw(st.lists(st.integers(0, (1 << dtype.bits) - 1), max_size=70))
    stream = sum(code << (dtype.bits * i) for i, code in enumerate(codes))
    size = -(-len(codes) * dtype.bits // 8)
    packed = pack(np.array(codes, np.uint8), dtype)
    assert packed.dtype == np.uint8
    assert packed.tolist() == list(stream.to_bytes(size, "little"))
    assert unpack(packed, dtype, len(codes)).tolist() == codes
    assert unpack(np.append(packed, np.uint8(255)), dtype, len(codes)).tolist() == codes


@pytest.mark.parametrize("dtype", [DType.E2M1, DType.E2M3], ids=lambda d: d.name)
@pytest.mark.parametrize("count", [(1 << 16) - 1, 1 << 16, (1 << 17) + 3])
def test_a_long_stream_is_no_different(dtype: SimpleDType, count: int) -> None:
    codes = np.random.default_rng(count).integers(0, 1 << dtype.bits, count).astype(np.uint8)
    bits = (codes[:, None] >> np.arange(dtype.bits)) & 1
    packed = pack(codes, dtype)
    np.testing.assert_array_equal(packed, np.packbits(bits.reshape(-1) != 0, bitorder="little"))
    np.testing.assert_array_equal(unpack(packed, dtype, count), codes)


def test_wide_codes_go_low_byte_first() -> None:
    assert pack(np.array([0x1234, 0xABCD], np.uint16), Float16).tolist() == [0x34, 0x12, 0xCD, 0xAB]
    assert unpack(np.arange(4, dtype=np.uint8), Float16, 2).tolist() == [0x0100, 0x0302]


def test_matrices_are_taken_row_by_row() -> None:
    codes = np.arange(16, dtype=np.uint8).reshape(4, 4)
    np.testing.assert_array_equal(pack(codes, DType.E2M1), pack(codes.reshape(-1), DType.E2M1))
    np.testing.assert_array_equal(pack(codes.T, DType.E2M1)[:2], [0x40, 0xC8])


def test_bad_input() -> None:
    with pytest.raises(IRValueError, match=r"^codes of E2M1 must lie in 0\.\.15, not in 0\.\.16$"):
        pack([0, 16], DType.E2M1)
    with pytest.raises(IRTypeError, match=r"^Packed codes must be uint8 bytes, not float64$"):
        unpack(np.zeros(3), DType.E2M1, 2)
    sentence = r"^The count must be in 0\.\.4, the codes of E3M2 that 3 bytes hold, not 5$"
    with pytest.raises(IRValueError, match=sentence):
        unpack(np.zeros(3, np.uint8), DType.E3M2, 5)
    with pytest.raises(IRValueError, match=r"^The count must be in"):
        unpack(np.zeros(3, np.uint8), DType.E3M2, -1)
