"""Where the published implementation lets pass what the format forbids, ours does not."""

import struct
from typing import Any

import pytest

from scalebox.traces import hurray

PRIVATE = hurray.Dtype.from_tag(0xF2)
INT24 = hurray.ExtensionType(24, is_signed=True)


def descriptor(**given: Any) -> bytearray:
    """Return the bytes of four private 24-bit integers; the extension section begins at byte 53."""
    return bytearray(
        hurray.Tensor(bytes(12), PRIVATE, [4], extension_type=INT24, **given).descriptor.encode()
    )


def refused(data: bytes, match: str) -> hurray.InvalidDescriptorError:
    with pytest.raises(hurray.InvalidDescriptorError, match=match) as caught:
        hurray.Descriptor.decode(data)
    return caught.value


def changed(data: bytearray, at: int, value: bytes) -> bytes:
    return bytes(data[:at] + value + data[at + len(value) :])


def test_a_float_with_is_signed_is_refused_on_decode() -> None:
    error = refused(changed(descriptor(), 58, b"\x01"), "is_signed .* must be False for a float")
    assert error.offset == 53


@pytest.mark.parametrize("at", [60, 61, 62, 65])
def test_an_integer_with_float_fields_is_refused_on_decode(at: int) -> None:
    value = b"\x01"
    if at == 60:  # sign_bits
        refused(changed(descriptor(), at, value), "must be 0 for an integer, not 1, 0, 0, 0")
    else:
        refused(changed(descriptor(), at, value), "must be 0 for an integer")


def test_sign_bits_of_2_are_refused_on_decode() -> None:
    refused(changed(descriptor(), 60, b"\x02"), "sign_bits .* must be 0 or 1, not 2")


@pytest.mark.parametrize(
    ("at", "name"), [(58, "is_float"), (59, "is_signed"), (69, "has_nan"), (70, "has_inf")]
)
@pytest.mark.parametrize("value", [2, 0x80, 0xFF])
def test_a_boolean_byte_other_than_0_and_1_is_refused(at: int, name: str, value: int) -> None:
    error = refused(
        changed(descriptor(), at, bytes([value])),
        rf"^At byte {at}: {name} of the extension type must be 0 or 1, not {value}$",
    )
    assert (error.offset, error.found) == (at, value)


@pytest.mark.parametrize("at", [63, 64, 71, 72])
def test_reserved_bytes_of_the_extension_section_are_refused(at: int) -> None:
    refused(changed(descriptor(), at, b"\x01"), "Reserved bytes of the extension type must be 0")


@pytest.mark.parametrize("width", [9, 10, 12, 15, 17, 20, 33])
def test_a_width_above_8_that_is_no_multiple_of_8_is_refused(width: int) -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match=f"a multiple of 8, not {width}"):
        hurray.ExtensionType(width)
    refused(changed(descriptor(), 53, struct.pack("<I", width)), "must be a multiple of 8")


@pytest.mark.parametrize("width", [3, 5, 6, 7])
def test_a_narrow_width_other_than_1_2_and_4_is_refused(width: int) -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match=f"1, 2 or 4.* not {width}"):
        hurray.ExtensionType(width)
    refused(changed(descriptor(), 53, struct.pack("<I", width)), "1, 2 or 4")


def test_a_packing_factor_that_is_not_that_of_the_width_is_refused() -> None:
    error = refused(changed(descriptor(), 57, b"\x02"), "of 24 bits must be 1, not 2")
    assert (error.offset, error.found) == (57, 2)


def test_nan_and_infinity_of_an_integer_are_accepted() -> None:
    made = hurray.ExtensionType(8, has_nan=True, has_inf=True)
    data = changed(descriptor(), 69, b"\x01\x01")
    assert hurray.Descriptor.decode(data).encode() == data
    assert repr(made) == "ExtensionType(bit_width=8, has_nan=True, has_inf=True)"


def test_sizes_never_wrap_around() -> None:
    # 3 * 6148914691236517206 is 2 modulo 2^64.
    with pytest.raises(hurray.BufferError, match="at least 18446744073709551618 bytes"):
        hurray.Tensor(bytes(2), PRIVATE, [6148914691236517206], extension_type=INT24)
    with pytest.raises(hurray.BufferError, match="at least 18446744073709551616 bytes"):
        hurray.Tensor(b"", hurray.float32, [1 << 62])
    data = changed(descriptor(), 20, struct.pack("<Q", 6148914691236517206))
    refused(data, r"must have at least 18446744073709551618 bytes, not 12$")
    with pytest.raises(hurray.FieldRangeError, match="must fit 64 bits"):
        hurray.buffer_size_bytes(hurray.float32, 1 << 62)


def test_a_sparse_tensor_of_a_private_type_is_sized_by_its_section() -> None:
    with pytest.raises(hurray.BufferError, match=r"\(values\) .* need at least 6 bytes for 2"):
        hurray.Tensor(
            b"",
            PRIVATE,
            [4],
            layout=hurray.CooLayout(2),
            aux_buffers=[bytes(16)],
            extension_type=INT24,
        )
    made = hurray.Tensor(
        bytes(6),
        PRIVATE,
        [4],
        layout=hurray.CooLayout(2),
        aux_buffers=[bytes(16)],
        extension_type=INT24,
    )
    data = made.descriptor.encode()
    table = 36 + 16
    refused(changed(bytearray(data), table + 1, b"\x05"), "must have at least 6 bytes, not 5")


LAYOUTS = [
    # 3 rows of 4, the last first: 12 places from the first to the last.
    (hurray.StridedLayout([-4, 1]), [3, 4], 12),
    (hurray.StridedLayout([10, 1]), [3, 4], 24),
    (hurray.StridedLayout([0, 1]), [3, 4], 4),
    # 2 by 2 tiles of 2 by 3.
    (hurray.TiledLayout([2, 3]), [3, 4], 24),
    (hurray.TiledLayout([2, 3], "strided", outer_strides=[4, 1]), [3, 4], 36),
    (hurray.TiledLayout([2, 3], inner_layout="strided", inner_strides=[8, 1]), [3, 4], 29),
    # A tile of 2 by 3, itself of 2 tiles of 2 by 2.
    (
        hurray.TiledLayout([2, 3], inner_layout="tiled", inner_tiled=hurray.TiledLayout([2, 2])),
        [3, 4],
        26,
    ),
    (hurray.MortonLayout([2, 2]), [3, 4], 16),
    # The last element of a shape of 2 by 8 is at 0b1_0_1_0_1_1: bit b of index d goes to 2 b + d.
    (hurray.MortonLayout([1, 3]), [2, 8], 44),
]


@pytest.mark.parametrize(("layout", "shape", "places"), LAYOUTS)
def test_a_buffer_must_reach_as_far_as_its_layout(
    layout: Any, shape: list[int], places: int
) -> None:
    made = hurray.Tensor(bytes(4 * places), hurray.float32, shape, layout=layout)
    with pytest.raises(hurray.BufferError, match=f"at least {4 * places} bytes"):
        hurray.Tensor(bytes(4 * places - 1), hurray.float32, shape, layout=layout)
    data = bytearray(made.descriptor.encode())
    table = len(data) - 17
    short = changed(data, table + 1, struct.pack("<Q", 4 * places - 1))
    error = refused(short, f"must have at least {4 * places} bytes, not {4 * places - 1}$")
    assert (error.offset, error.found) == (table + 1, 4 * places - 1)


def test_a_shard_beyond_its_parent_is_refused_when_it_is_authored() -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match="Along axis 0, a shard must end"):
        hurray.Tensor(bytes(16), hurray.float32, [4], shard=hurray.Shard([4], [1]))
    data = bytearray(
        hurray.Tensor(
            bytes(16), hurray.float32, [4], shard=hurray.Shard([8], [4])
        ).descriptor.encode()
    )
    error = refused(changed(data, 61, b"\x05"), "within its parent's 8, not begin at 5")
    assert (error.offset, error.found) == (61, 5)
    refused(changed(data, 61, b"\xff" * 8), "within its parent's 8")


def test_a_memory_class_that_the_device_has_not_is_refused() -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match="one that cpu has, not peer"):
        hurray.Device("cpu", memory_class="peer")
    error = refused(changed(descriptor(), 51, b"\x03"), "one that cpu has, not peer")
    assert error.offset == 51


def test_buffers_on_two_devices_are_refused() -> None:
    made = hurray.Tensor(bytes(12), PRIVATE, [4], aux_buffers=[b"x"], extension_type=INT24)
    data = bytearray(made.descriptor.encode())
    error = refused(changed(data, 65, b"\x01"), "All buffers must live on one device")
    assert error.offset == 36


def test_a_byte_offset_beyond_the_buffer_is_refused() -> None:
    error = refused(changed(descriptor(), 28, b"\x0d"), "must lie in the 12 bytes of buffer 0")
    assert (error.offset, error.found) == (28, 13)
    refused(changed(descriptor(), 28, b"\x01"), "must have at least 13 bytes, not 12")


def test_a_byte_offset_of_a_sparse_tensor_is_refused() -> None:
    made = hurray.Tensor(
        bytes(8), hurray.float32, [4], layout=hurray.CooLayout(2), aux_buffers=[bytes(16)]
    )
    data = bytearray(made.descriptor.encode())
    refused(changed(data, 28, b"\x01"), "The byte offset of a coo layout must be 0, not 1")


def test_major_version_0_is_refused() -> None:
    refused(changed(descriptor(), 4, b"\0"), "must be 1, not 0, which is older")


TABLE_FAULTS = [
    (36, 0, "must be 1 to 255, not 0"),
    (45, 65, "must be a power of two, not 65"),
    (45, 32, "must be at least 64 unless it is empty, not 32"),
    (45, 0, "must be a power of two, not 0"),
    (49, 9, "not 0x09, which is reserved"),
    (49, 0xFF, "not 0xFF, which is invalid"),
    (50, 3, "The sync mode of a buffer must be 0, 1 or 2, not 3"),
    (50, 1, "on a CPU must be producer_synced"),
    (51, 4, "The memory class of a buffer must be below 4"),
    (52, 1, "The reserved byte of a buffer must be 0, not 0x01"),
]


@pytest.mark.parametrize(("at", "value", "message"), TABLE_FAULTS)
def test_a_wrong_entry_of_the_buffer_table_is_refused(at: int, value: int, message: str) -> None:
    data = changed(descriptor(), at, bytes([value]))
    if at == 36:  # the entry of a table without entries is not there
        data = data[:37] + data[53:]
        data = data[:6] + struct.pack("<I", len(data)) + data[10:]
    error = refused(data, message)
    assert error.offset == at


def mxfp(**given: Any) -> hurray.Tensor:
    fields: dict[str, Any] = {
        "buffer": bytes(64),
        "dtype": hurray.float8_e4m3,
        "shape": [2, 32],
        "aux_buffers": [bytes(2)],
        "quantization": hurray.MXFP(1, 32, 1),
    }
    return hurray.Tensor(**(fields | given))


MXFP_FAULTS = [
    ({"quantization": hurray.MXFP(2, 32, 1)}, "axis .* must be below the rank 2, not 2"),
    ({"quantization": hurray.MXFP(0, 32, 1)}, "positive multiple of the block of 32, not 2"),
    ({"shape": [2, 33], "buffer": bytes(66)}, "positive multiple of the block of 32, not 33"),
    ({"shape": [2, 0], "buffer": b""}, "positive multiple of the block of 32, not 0"),
    ({"shape": [2, None]}, "positive multiple of the block of 32, not None"),
    ({"quantization": hurray.MXFP(1, 32, 0)}, "scale_buffer_index .* behind the 1 of the data"),
    ({"quantization": hurray.MXFP(1, 32, 2)}, "below 2, not 2"),
    ({"dtype": hurray.float32, "buffer": bytes(256)}, "must be one of float8_e4m3, .* not float32"),
    ({"dtype": hurray.uint8}, "must be one of float8_e4m3, .* not uint8"),
    ({"aux_buffers": [bytes(3)]}, "must be 2 bytes, one a block, not 3"),
    ({"aux_buffers": [b""]}, "must be 2 bytes, one a block, not 0"),
]


@pytest.mark.parametrize(("given", "message"), MXFP_FAULTS)
def test_an_mxfp_tensor_that_breaks_the_scheme_is_refused(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match=message):
        mxfp(**given)


def test_scales_of_the_wrong_size_are_both_a_bad_descriptor_and_a_bad_buffer() -> None:
    with pytest.raises(hurray.BufferError, match="must be 2 bytes, one a block, not 3"):
        mxfp(aux_buffers=[bytes(3)])
    data = bytearray(mxfp().descriptor.encode())
    error = refused(changed(data, 61, b"\x03"), "must be 2 bytes, one a block, not 3")
    assert (error.offset, error.found) == (93, 3)
    assert isinstance(error, hurray.BufferSizeError)


def test_a_private_type_under_the_mxfp_scheme_is_refused() -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match="must be one of float8_e4m3"):
        mxfp(dtype=PRIVATE, extension_type=hurray.ExtensionType(8))


@pytest.mark.parametrize("block", [0, 8, 24, 33, 4096])
def test_a_block_size_that_is_no_power_of_two_in_range_is_refused(block: int) -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match=f"in 16..2048, not {block}"):
        hurray.MXFP(1, block, 1)
    data = changed(bytearray(mxfp().descriptor.encode()), 89, struct.pack("<I", block))
    assert refused(data, f"in 16..2048, not {block}").offset == 89


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (82, b"\0", "version of the MXFP scheme must be 1, not 0"),
        (82, b"\x02", "version of the MXFP scheme must be 1, not 2"),
        (83, b"\x01", "flags of the MXFP scheme must be 0, not 0x0001"),
        (85, b"\x07", "must be below the rank 2, not 7"),
        (93, b"\x00", "behind the 1 of the data"),
        (93, b"\xff\xff\xff\xff", "must name a buffer, not 0xFFFFFFFF"),
    ],
)
def test_a_wrong_field_of_an_mxfp_section_is_refused(at: int, value: bytes, message: str) -> None:
    assert refused(changed(bytearray(mxfp().descriptor.encode()), at, value), message).offset == at


def test_other_schemes_are_kept_as_they_are() -> None:
    for section in (
        b"\x01\x01\0\0" + bytes(12),
        b"\x06\x07\x01\0",
        b"\xf9\0\0\0secret",
        b"\x60\1\0\0",
    ):
        made = hurray.Tensor(
            bytes(16), hurray.float32, [4], quantization=hurray.VerbatimScheme(section)
        )
        data = made.descriptor.encode()
        restored = hurray.Descriptor.decode(data)
        assert restored.quantization == hurray.VerbatimScheme(section)
        assert restored.encode() == data
    for section in (b"", b"\x01\x01\0", b"\0\x01\0\0", b"\xff\x01\0\0"):
        with pytest.raises(hurray.InvalidDescriptorError):
            hurray.decode_quantization(section)


def test_ranks_that_a_layout_cannot_have_are_refused() -> None:
    sparse: list[tuple[Any, list[int], int]] = [
        (hurray.CsrLayout(0), [4], 2),
        (hurray.CscLayout(0), [4, 4, 4], 2),
        (hurray.CsfLayout(0, [0, 1]), [4, 4], 4),
        (hurray.BlockPagedLayout(1, 1, 0, 1), [4, 4], 2),
        (hurray.HilbertLayout(1, 2), [2, 2, 2], 0),
        (hurray.TiledLayout([2]), [2, 2], 0),
        (hurray.StridedLayout([2]), [2, 2], 0),
        (hurray.MortonLayout([2]), [2, 2], 0),
    ]
    for layout, shape, others in sparse:
        with pytest.raises(hurray.InvalidDescriptorError, match="must"):
            hurray.Tensor(
                bytes(999), hurray.float32, shape, layout=layout, aux_buffers=[bytes(99)] * others
            )
