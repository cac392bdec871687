"""Descriptors byte by byte; the bytes were written by hand from the published layout."""

import copy
import pickle
import re
import struct
from typing import Any

import pytest

from scalebox.traces import hurray

INT24 = hurray.ExtensionType(24, is_signed=True)

# The specification's example: four private 24-bit integers.
INT24_BYTES = bytes.fromhex(
    "48525259 01 00 49000000 04000000 f2 01 01000000"  # magic to rank
    "0400000000000000 0000000000000000"  # shape and byte offset
    "01 0c00000000000000 40000000 00 00 00 00"  # one buffer
    "18000000 01 00 01 00 00 00 0000 00000000 00 00 0000"  # the extension section
)


def float32(*shape: int, **fields: object) -> bytes:
    """Return the bytes of a float32 tensor; `fields` replace parts of the header."""
    count = 1
    for extent in shape:
        count *= extent
    size = 45 + 8 * len(shape)
    header = struct.pack(
        "<4sBBIIBBI",
        fields.get("magic", b"HRRY"),
        fields.get("major", 1),
        fields.get("minor", 0),
        fields.get("length", size),
        fields.get("flags", 0),
        fields.get("type", 3),
        fields.get("layout", 1),
        fields.get("rank", len(shape)),
    )
    body = struct.pack(f"<{len(shape)}QQB", *shape, 0, 1)
    return header + body + struct.pack("<QI4x", 4 * count, 64 if count else 1)


def test_the_example_of_the_specification_is_73_known_bytes() -> None:
    private = hurray.Dtype.from_tag(0xF2)
    tensor = hurray.Tensor(bytes(12), private, [4], extension_type=INT24)
    assert tensor.descriptor.encode() == INT24_BYTES
    assert len(INT24_BYTES) == 73 == tensor.descriptor.encoded_len
    assert hurray.Descriptor.decode(INT24_BYTES) == tensor.descriptor


@pytest.mark.parametrize(
    ("made", "section"),
    [
        (INT24, "18000000 01 00 01 00 00 00 0000 00000000 00 00 0000"),
        (hurray.ExtensionType(4), "04000000 02 00 00 00 00 00 0000 00000000 00 00 0000"),
        (hurray.ExtensionType(1), "01000000 08 00 00 00 00 00 0000 00000000 00 00 0000"),
        (
            hurray.ExtensionType(
                16,
                is_float=True,
                sign_bits=1,
                exponent_bits=5,
                mantissa_bits=10,
                exponent_bias=15,
                has_nan=True,
                has_inf=True,
            ),
            "10000000 01 01 00 01 05 0a 0000 0f000000 01 01 0000",
        ),
        (
            hurray.ExtensionType(
                8, is_float=True, exponent_bits=8, exponent_bias=127, has_nan=True
            ),
            "08000000 01 01 00 00 08 00 0000 7f000000 01 00 0000",
        ),
    ],
)
def test_an_extension_section_has_20_known_bytes(made: hurray.ExtensionType, section: str) -> None:
    assert made.encode() == bytes.fromhex(section)


def test_an_mxfp_tensor_has_97_known_bytes() -> None:
    tensor = hurray.Tensor(
        bytes(64),
        hurray.float8_e4m3,
        [2, 32],
        aux_buffers=[bytes(2)],
        quantization=hurray.MXFP(axis=1, block_size=32, scale_buffer_index=1),
    )
    data = tensor.descriptor.encode()
    assert data == bytes.fromhex(
        "48525259 01 00 61000000 01000000 40 01 02000000"
        "0200000000000000 2000000000000000 0000000000000000"
        "02 4000000000000000 40000000 00000000 0200000000000000 40000000 00000000"
        "10000000 05 01 0000 01000000 20000000 01000000"
    )
    assert hurray.Descriptor.decode(data).quantization == tensor.quantization


def test_statistics_stand_before_the_extension_section_though_their_flag_is_higher() -> None:
    made = hurray.Tensor(
        bytes(12),
        hurray.Dtype.from_tag(0xF2),
        [4],
        extension_type=INT24,
        statistics=hurray.Statistics(nnz=3),
        shard=hurray.Shard([8], [4]),
        quantization=hurray.VerbatimScheme(b"\xf3\x01\0\0abc"),
    )
    data = made.descriptor.encode()
    assert data[10:14] == b"\x0f\0\0\0"
    sections = data[53:]
    assert sections[:11] == b"\x07\0\0\0\xf3\x01\0\0abc"
    assert sections[11:27] == struct.pack("<QQ", 8, 4)
    assert sections[27:39] == struct.pack("<IIi", 1, 0, 3)
    assert sections[27 + 72 :] == INT24.encode()
    assert hurray.Descriptor.decode(data) == made.descriptor


def test_a_scalar_takes_45_bytes_and_an_empty_tensor_is_aligned_to_1() -> None:
    assert hurray.Tensor(bytes(4), hurray.float32, []).descriptor.encode() == float32()
    assert hurray.Tensor(b"", hurray.float32, [0]).descriptor.encode() == float32(0)
    assert len(float32()) == 45


def test_a_dynamic_extent_is_written_as_all_ones_and_turns_off_the_check_of_sizes() -> None:
    tensor = hurray.Tensor(b"", hurray.float32, [None, 4])
    data = tensor.descriptor.encode()
    assert data[20:28] == b"\xff" * 8
    restored = hurray.Descriptor.decode(data)
    assert (restored.shape, restored.size, restored.ndim) == ((None, 4), None, 2)


def test_strided_and_tiled_layouts_have_known_bytes() -> None:
    strided = hurray.Tensor(bytes(48), hurray.float32, [3, 4], layout=hurray.StridedLayout([-4, 1]))
    assert strided.descriptor.encode()[44:60] == struct.pack("<qq", -4, 1)
    nested = hurray.TiledLayout([2, 2], "col_major", "strided", inner_strides=[2, 1])
    tiled = hurray.Tensor(
        bytes(256),
        hurray.float32,
        [8, 8],
        layout=hurray.TiledLayout(
            [4, 4], "strided", "tiled", outer_strides=[1, 2], inner_tiled=nested
        ),
    )
    assert tiled.descriptor.encode()[44:116] == (
        struct.pack("<QQ2B2xqq", 4, 4, 3, 4, 1, 2) + struct.pack("<QQ2B2xqq", 2, 2, 2, 3, 2, 1)
    )
    assert hurray.Descriptor.decode(tiled.descriptor.encode()) == tiled.descriptor


def test_eight_nested_tiles_are_accepted_and_nine_refused() -> None:
    layout = hurray.TiledLayout([1])
    for _ in range(7):
        layout = hurray.TiledLayout([1], inner_layout="tiled", inner_tiled=layout)
    tensor = hurray.Tensor(bytes(4), hurray.float32, [1], layout=layout)
    data = tensor.descriptor.encode()
    assert hurray.Descriptor.decode(data) == tensor.descriptor
    with pytest.raises(hurray.InvalidDescriptorError, match="at most 8 deep, not 9"):
        hurray.TiledLayout([1], inner_layout="tiled", inner_tiled=layout)
    nine = bytearray(data[:36] + data[36:48][:8] + b"\x01\x04\0\0" + data[36:])
    nine[6:10] = struct.pack("<I", len(nine))
    with pytest.raises(hurray.InvalidDescriptorError, match=r"At byte 132: .* at most 8 deep"):
        hurray.Descriptor.decode(bytes(nine))


def test_bytes_behind_the_sections_of_a_later_minor_version_are_kept() -> None:
    data = float32(4, minor=1, length=53 + 5) + b"later"
    restored = hurray.Descriptor.decode(data)
    assert (restored.version, restored.trailing) == ((1, 1), b"later")
    assert restored.encode() == data


HEADER_FAULTS = [
    ({"magic": b"HRRX"}, 0, b"HRRX", "magic must be 48 52 52 59 ('HRRY'), not 48 52 52 58"),
    ({"major": 2}, 4, 2, "major version must be 1, not 2, which is newer"),
    ({"major": 0}, 4, 0, "major version must be 1, not 0, which is older"),
    ({"length": 19}, 6, 19, "length must be at least 20, not 19"),
    ({"length": 54}, 6, 54, "must be given whole and alone, not as 53 bytes: it is cut off"),
    ({"length": 52}, 6, 52, "not as 53 bytes: it is followed by other bytes"),
    ({"flags": 0x20}, 10, 0x20, "flags must have no bits above 4, not be 0x00000020"),
    ({"type": 0x00}, 14, 0x00, "not 0x00, which is invalid"),
    ({"type": 0x47}, 14, 0x47, "not 0x47, which is reserved"),
    ({"type": 0x4C}, 14, 0x4C, "not 0x4C, which is unknown"),
    ({"type": 0xFF}, 14, 0xFF, "not 0xFF, which is invalid"),
    ({"layout": 0x00}, 15, 0x00, "layout tag must be a known one"),
    ({"layout": 0x0C}, 15, 0x0C, "not 0x0C, which is reserved"),
    ({"rank": 65}, 16, 65, "rank must be at most 64, not 65"),
    ({"rank": 9}, 20, 33, "The shape of 9 dimensions must have 72 bytes, but only 33 are left"),
    ({"type": 0xF2}, 10, 0, "must have an extension type section (flag 0x04)"),
    ({"flags": 4}, 14, 3, "must have a private element type (0xF0 to 0xFE), not tag 0x03"),
    ({"flags": 1}, 53, 0, "The quantization section's length must have 4 bytes"),
    ({"flags": 2}, 53, 0, "The shard section must have 16 bytes, but only 0 are left"),
    ({"flags": 8}, 53, 0, "The statistics section must have 72 bytes, but only 0 are left"),
    ({"flags": 16}, 53, 0, "The composite member section must have 16 bytes"),
]


@pytest.mark.parametrize(("fields", "offset", "found", "message"), HEADER_FAULTS)
def test_a_fault_has_its_own_message_with_the_offset_and_what_was_found(
    fields: dict[str, object], offset: int, found: object, message: str
) -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match=re.escape(message)) as caught:
        hurray.Descriptor.decode(float32(4, **fields))
    assert (caught.value.offset, caught.value.found) == (offset, found)
    assert str(caught.value).startswith(f"At byte {offset}: ")


def test_no_two_faults_have_the_same_message() -> None:
    messages: set[str] = set()
    for fields, *_ in HEADER_FAULTS:
        with pytest.raises(hurray.InvalidDescriptorError) as caught:
            hurray.Descriptor.decode(float32(4, **fields))
        messages.add(str(caught.value))
    assert len(messages) == len(HEADER_FAULTS)


@pytest.mark.parametrize("data", [INT24_BYTES, float32(2, 3)])
def test_a_descriptor_that_is_cut_off_anywhere_is_refused(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(hurray.InvalidDescriptorError) as caught:
            hurray.Descriptor.decode(data[:length])
        assert caught.value.offset == (0 if length < 10 else 6)
        if length >= 20:  # the same with a length that agrees: the part that is cut off is named
            shorter = data[:6] + struct.pack("<I", length) + data[10:length]
            with pytest.raises(hurray.InvalidDescriptorError, match=r"must have .* are left"):
                hurray.Descriptor.decode(shorter)


def test_a_descriptor_is_decoded_from_any_bytes_and_from_nothing_else() -> None:
    for kind in (bytes, bytearray, memoryview):
        assert hurray.Descriptor.decode(kind(INT24_BYTES)).encode() == INT24_BYTES
    for other in ("HRRY", 73, None):
        with pytest.raises(hurray.FieldTypeError, match="must be decoded from bytes, not from"):
            hurray.Descriptor.decode(other)  # type: ignore[arg-type]


def test_descriptors_are_values() -> None:
    one, other = (hurray.Descriptor.decode(INT24_BYTES) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
    assert one != hurray.Descriptor.decode(float32(4))
    with pytest.raises(AttributeError):
        one.shape = (5,)  # type: ignore[misc]


def test_statistics_that_are_not_numbers_equal_themselves() -> None:
    made = hurray.Statistics(value_mean=float("nan"), value_stddev=0.0)
    again = hurray.Statistics.from_section(made.encode())
    assert made == again
    assert again.value_mean != again.value_mean
    assert (again.value_min, again.computed_mask) == (None, 8)


def test_a_statistic_without_its_partners_is_refused() -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match="nm_m must be given where nm_n is"):
        hurray.Statistics(nm_n=2)
    with pytest.raises(hurray.FieldTypeError, match=r"must be one of nnz, .* not 'mode'"):
        hurray.Statistics(mode=1)


def test_only_a_member_of_a_composite_has_a_role_in_it() -> None:
    member = float32(4, flags=16, length=53 + 16) + b"\1" + bytes(15)
    assert hurray.Descriptor.decode(member).composite_role is hurray.CompositeRole.BASE
    assert hurray.Descriptor.decode(member).encode() == member
    for section, offset, message in (
        (b"\2" + bytes(15), 53, "role of a composite's member must be 0 or 1, not 2"),
        (b"\1\1" + bytes(14), 54, "Reserved bytes of a composite's member must be 0"),
    ):
        with pytest.raises(hurray.InvalidDescriptorError, match=message) as caught:
            hurray.Descriptor.decode(member[:53] + section)
        assert caught.value.offset == offset
    head = struct.pack("<4sBBIIBBI", b"HRRY", 1, 0, 37, 0, 3, 0x0B, 0) + bytes(8)
    head += struct.pack("<BB2xI", 3, 0, 2) + b"\0"
    assert hurray.Descriptor.decode(head).layout == hurray.CompositeLayout("group", 2)
    with_role = head[:6] + struct.pack("<II", 53, 16) + head[14:] + bytes(16)
    with pytest.raises(hurray.InvalidDescriptorError, match="must have no role") as caught:
        hurray.Descriptor.decode(with_role)
    assert caught.value.offset == 37


def test_an_authored_descriptor_is_held_to_the_same_rules() -> None:
    def made(**fields: Any) -> hurray.Descriptor:
        given: dict[str, Any] = {
            "dtype": hurray.float32,
            "shape": (4,),
            "buffer_handles": (hurray.BufferHandle(16),),
        }
        return hurray.Descriptor(**(given | fields))

    assert made().encode() == float32(4)
    assert made(version=(1, 3), trailing=b"x").encode()[-1:] == b"x"
    faults: list[tuple[dict[str, Any], str]] = [
        ({"version": (2, 0)}, r"must be 1\.0 to 1\.255, not 2\.0"),
        ({"version": (1, 256)}, r"must be 1\.0 to 1\.255, not 1\.256"),
        ({"trailing": b"x"}, "must end with its last section, not have 1 bytes behind it"),
        ({"shape": (5,)}, "must have at least 20 bytes, not 16"),
        ({"shape": (-4,)}, "must be in 0"),
        ({"byte_offset": -1}, "must lie in the 16 bytes"),
        ({"buffer_handles": ()}, "must be 1 to 255, not 0"),
    ]
    for fields, message in faults:
        with pytest.raises(hurray.InvalidDescriptorError, match=message):
            made(**fields)
