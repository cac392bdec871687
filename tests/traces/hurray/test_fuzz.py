"""Whatever the bytes: they are refused by name, or decoding and encoding gives them back."""

import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.traces import hurray

from .generated import tensor

VALID = [tensor(hurray, Random(seed)).descriptor.encode() for seed in range(120)]
HUGE = (1 << 63, (1 << 64) - 1, 1 << 32, 0xFFFFFFFF, 0xFFFF, 0xFF)


def accept_or_refuse(data: bytes) -> bool:
    try:
        descriptor = hurray.Descriptor.decode(data)
    except hurray.InvalidDescriptorError as error:
        offset = error.offset
    else:
        assert descriptor.encode() == data
        assert hurray.Descriptor.decode(data) == descriptor
        return True
    assert offset is not None
    assert 0 <= offset <= max(len(data), 16)
    return False


@given(st.binary(max_size=200))
def test_arbitrary_bytes(data: bytes) -> None:
    accept_or_refuse(data)


@given(st.binary(max_size=200), st.integers(0, 0x1F), st.integers(0, 255), st.integers(0, 0x41))
def test_arbitrary_bytes_behind_a_plausible_header(
    body: bytes, flags: int, type_tag: int, layout_tag: int
) -> None:
    rank = len(body) % 4
    length = 20 + len(body)
    header = struct.pack("<4sBBIIBBI", b"HRRY", 1, 0, length, flags, type_tag, layout_tag, rank)
    accept_or_refuse(header + body)


@st.composite
def mutated(draw: Any) -> bytes:
    data = bytearray(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.integers(0, 4)):
            case 0:
                data[at] = draw(st.integers(0, 255))
            case 1:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case 2:
                word = struct.pack("<Q", draw(st.sampled_from(HUGE)))
                data[at : at + 8] = word[: len(data[at : at + 8])]
            case 3:
                data[at:at] = draw(st.binary(min_size=1, max_size=9))
            case _:
                del data[at : at + draw(st.integers(1, 9))]
        if not data:
            return b""
    if draw(st.booleans()) and len(data) >= 10:  # a length that agrees lets more through
        data[6:10] = struct.pack("<I", len(data))
    return bytes(data)


@settings(max_examples=1000)
@given(mutated())
def test_valid_bytes_that_were_changed(data: bytes) -> None:
    accept_or_refuse(data)


def test_every_byte_of_valid_descriptors_set_to_extremes() -> None:
    outcomes = [
        accept_or_refuse(data[:at] + bytes([value]) + data[at + 1 :])
        for data in VALID[:40]
        for at in range(len(data))
        for value in (0x00, 0x01, 0x7F, 0xFF)
    ]
    assert any(outcomes)
    assert not all(outcomes)


def test_every_valid_descriptor_cut_off_anywhere_is_refused() -> None:
    for data in VALID:
        for length in range(len(data)):
            assert not accept_or_refuse(data[:length])


def hostile() -> list[bytes]:
    """Return descriptors that promise more than there is, wherever they can."""
    shape = struct.pack("<Q", (1 << 64) - 2)
    table = b"\x01" + struct.pack("<QI4x", (1 << 64) - 1, 64)

    def made(layout: int, body: bytes, rank: int, flags: int = 0, tag: int = 3) -> bytes:
        return (
            struct.pack("<4sBBIIBBI", b"HRRY", 1, 0, 20 + len(body), flags, tag, layout, rank)
            + body
        )

    many = shape * 64 + bytes(8)
    return [
        made(1, many + table, 64),
        made(3, many + struct.pack("<q", (1 << 63) - 1) * 64 + table, 64),
        made(4, many + struct.pack("<Q", (1 << 64) - 1) * 64 + b"\1\1\0\0" + table, 64),
        made(5, many + b"\xff" * 4 * 64 + table, 64),
        made(0x40, many + struct.pack("<II", 0xFFFFFFFF, 64) + table, 64),
        made(6, many + b"\xff" * 8 + bytes(8) + table, 64),
        made(9, many + b"\xff" * 8 + struct.pack("<64I", *range(64)) + bytes(8) + table, 64),
        made(0xF0, many + bytes(8) + b"\xff" * 4 + table, 64),
        made(11, bytes(8) + b"\1\0\0\0\xfe\xff\xff\xff\0", 0),
        made(1, bytes(8) + b"\xff" + table[1:], 0),
        made(1, bytes(8) + table + b"\xff\xff\xff\xff", 0, flags=1),
        struct.pack("<4sBBI", b"HRRY", 1, 0, 0xFFFFFFFF),
    ]


@pytest.mark.parametrize("number", range(len(hostile())))
def test_hostile_sizes_cost_no_memory(number: int) -> None:
    data = hostile()[number]
    tracemalloc.start()
    try:
        accept_or_refuse(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 18


@pytest.fixture(scope="module")
def file_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("fuzz") / "valid.hrry"
    tensors = {f"t{seed}": tensor(hurray, Random(seed)) for seed in range(4)}
    hurray.save(path, tensors, {"k": [1, 2], "s": "text", "b": True})
    return path.read_bytes()


def read_all(path: Path) -> None:
    with suppress(hurray.InvalidDescriptorError):
        for loaded in hurray.load(path).values():
            loaded.descriptor.encode()
        hurray.load_kv(path)


# Where a file of ours has more than padding: header, the descriptors, and all behind the data.
@settings(max_examples=300)
@given(data=st.data())
def test_files_that_were_changed(
    data: st.DataObject, file_bytes: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    changed = bytearray(file_bytes)
    meaningful = [at for at, byte in enumerate(changed) if byte] + [*range(64)]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from(meaningful))
        changed[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        changed[12] = 0  # no checksum
    path = tmp_path_factory.getbasetemp() / "changed.hrry"
    path.write_bytes(changed)
    read_all(path)


@given(st.binary(max_size=300))
@settings(max_examples=200)
def test_streams_of_arbitrary_bytes(data: bytes) -> None:
    for source in (data, VALID[0] + data):
        with suppress(hurray.InvalidDescriptorError):
            list(hurray.StreamReader(source))
