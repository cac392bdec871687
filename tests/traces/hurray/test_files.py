"""Tensor files: their bytes, what damaged ones get, and reading without copying."""

import mmap
import os
import re
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from scalebox.traces import hurray
from scalebox.traces.hurray import container
from scalebox.traces.hurray.crc import crc32c

from .generated import tensor


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.hrry"


def small(path: Path, **kv: Any) -> bytes:
    """Write one float32 tensor of four elements called `a`, and return the file's bytes."""
    made = hurray.Tensor(np.arange(4, dtype=np.float32), hurray.float32, [4])
    hurray.save(path, {"a": made}, kv or None)
    return path.read_bytes()


def test_the_checksum_is_that_of_the_standards_test_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


def test_the_checksum_of_long_data_is_that_of_a_bit_by_bit_division() -> None:
    data = Random(1).randbytes(20_000)
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    assert crc32c(data) == register ^ 0xFFFFFFFF


def test_a_file_without_tensors_is_112_known_bytes(path: Path) -> None:
    hurray.save(path, {})
    index = bytes(8)
    assert path.read_bytes() == (
        b"HRRYFILE\1\0\0\0\4\0\0\0\0\x10\0\0"
        + struct.pack("<QQ", 64, (1 << 64) - 1)
        + bytes(28)
        + index
        + struct.pack("<QQQII4x4s", 64, 8, 0, 0, crc32c(index), b"HRRY")
    )
    assert hurray.load(path) == {}
    assert hurray.load_kv(path) == {}


def test_the_parts_of_a_file_stand_where_the_format_says(path: Path) -> None:
    data = small(path, key="value")
    assert data[64:68] == b"HRRY"
    assert data[64 + 53 : 4096] == bytes(4096 - 64 - 53)
    assert data[4096:4112] == struct.pack("<4f", 0, 1, 2, 3)
    key_values = b"\1\0\0\0\3\0key\1\5\0\0\0value"
    assert data[4112 : 4112 + len(key_values)] == key_values
    index_at = 4112 + 24
    assert data[index_at:-40] == struct.pack("<QH1sQIQQI", 1, 1, b"a", 64, 53, 4096, 16, 0)
    assert data[-40:] == struct.pack(
        "<QQQII4x4s", index_at, 43, 4112, len(key_values), crc32c(data[index_at:-40]), b"HRRY"
    )


def test_buffers_stand_at_multiples_of_4096_and_the_last_is_not_padded(path: Path) -> None:
    made = hurray.Tensor(
        bytes(64),
        hurray.float8_e4m3,
        [2, 32],
        aux_buffers=[b"\x7f\x80"],
        quantization=hurray.MXFP(1, 32, 1),
    )
    hurray.save(path, {"m": made, "after": made})
    data = path.read_bytes()
    assert data[8192:8194] == b"\x7f\x80"
    assert data[8200:8204] == b"HRRY"
    assert hurray.load(path)["after"].buffer(1) == b"\x7f\x80"


def test_key_values_of_every_type_come_back(path: Path) -> None:
    given: dict[str, Any] = {
        "text": "µ", "nothing": "", "negative": -(1 << 63), "large": (1 << 64) - 1, "float": 0.1,
        "yes": True, "no": False, "bytes": bytes(range(256)), "numbers": [1, -2],
        "large ones": [1, 1 << 63], "texts": ["a", ""], "flags": [True, False], "floats": [0.5],
        "raw": [b"", b"\0"],
    }  # fmt: skip
    hurray.save(path, {}, given)
    back = hurray.load_kv(path)
    assert back == given
    assert {key: type(value) for key, value in back.items()} == {
        key: type(value) for key, value in given.items()
    }


@pytest.mark.parametrize(
    ("kv", "message"),
    [
        ({"": 1}, "A key must be a text of 1 to 65535 bytes, not ''"),
        ({"k" * 65536: 1}, "A key must be a text of 1 to 65535 bytes"),
        ({1: 1}, "A key must be a text of 1 to 65535 bytes, not 1"),
        ({"\ud800": 1}, "A key must be a text"),
        ({"k": None}, "must be a str, int, float, bool, bytes or a list of one of these, not None"),
        ({"k": [[1]]}, "must be a str, int, float, bool, bytes or a list of one of these"),
        ({"k": []}, "The sequence of key 'k' must not be empty"),
        ({"k": [1, "x"]}, "must be of one type, not of string and i64"),
        ({"k": [-1, 1 << 63]}, "must be of one type, not of i64 and u64"),
        ({"k": 1 << 64}, "must fit 64 bits, not be 18446744073709551616"),
        ({"k": "\ud800"}, "A text must be Unicode"),
    ],
)
def test_key_values_that_a_file_cannot_hold_are_refused(
    path: Path, kv: dict[Any, Any], message: str
) -> None:
    with pytest.raises(hurray.InvalidDescriptorError, match=message):
        hurray.save(path, {}, kv)
    assert not path.exists()


def test_names_and_tensors_that_a_file_cannot_hold_are_refused(path: Path) -> None:
    made = hurray.from_numpy(np.zeros(1, np.float32))
    with pytest.raises(hurray.FileError, match="A tensor's name must be a text of 1 to 65535"):
        hurray.save(path, {"": made})
    with pytest.raises(hurray.FieldTypeError, match="'a' must be a Tensor, not ndarray"):
        hurray.save(path, {"a": np.zeros(1)})  # type: ignore[dict-item]
    assert not path.exists()


def put(data: bytes, at: int, form: str, value: Any) -> bytes:
    changed = bytearray(data)
    struct.pack_into("<" + form, changed, at % len(data), value)
    return bytes(changed)


INDEX_AT = 4112
TRAILER_AT = INDEX_AT + 43

FAULTS = [
    (0, "8s", b"HRRYFILX", 0, "magic must be b'HRRYFILE', not b'HRRYFILX'"),
    (8, "B", 2, 8, "major version must be 1, not 2, which is newer"),
    (8, "B", 0, 8, "major version must be 1, not 0, which is older"),
    (10, "H", 1, 10, "Reserved bytes of a tensor file's header must be 0, not 0x1"),
    (36, "B", 1, 36, "Reserved bytes of a tensor file's header must be 0, not 0x1"),
    (12, "I", 8, 12, "flags must have no bits above 2, not be 0x00000008"),
    (16, "I", 0, 16, "alignment must be a power of two in 4096..2097152, not 0"),
    (16, "I", 6144, 16, "alignment must be a power of two in 4096..2097152, not 6144"),
    (16, "I", 4 << 20, 16, "alignment must be a power of two in 4096..2097152, not 4194304"),
    (20, "Q", 72, 20, "first descriptor must be at byte 64, not 72"),
    (28, "Q", 2, INDEX_AT, "The number of tensors must be 2, not 1"),
    (-4, "4s", b"HRRX", TRAILER_AT + 36, "must end with b'HRRY', not b'HRRX'"),
    (TRAILER_AT + 32, "I", 1, TRAILER_AT + 32, "Reserved bytes of a tensor file's trailer"),
    (TRAILER_AT, "Q", 1 << 60, TRAILER_AT, "The index must lie between the header and the trailer"),
    (TRAILER_AT, "Q", 0, TRAILER_AT, "The index must lie between the header and the trailer"),
    (TRAILER_AT + 8, "Q", 44, TRAILER_AT, "not be 44 bytes at byte 4112"),
    (TRAILER_AT + 16, "Q", 64, TRAILER_AT + 16, "must be at byte 0 where there are none"),
    (TRAILER_AT + 24, "I", 9, TRAILER_AT + 16, "The key-values must lie between the header and"),
    (TRAILER_AT + 28, "I", 0, TRAILER_AT + 28, "The checksum of the index must be 0x"),
    (INDEX_AT + 11, "Q", 1 << 40, TRAILER_AT + 28, "The checksum of the index must be 0x"),
]

# The same with no checksum, so that the index is read.
INDEX_FAULTS = [
    (INDEX_AT, "Q", 1 << 60, INDEX_AT, "The number of tensors must be at most 1, not 11529"),
    (INDEX_AT, "Q", 0, INDEX_AT + 8, "the index must end here, not 35 bytes later"),
    (INDEX_AT + 8, "H", 0, INDEX_AT + 8, "A tensor's name must be of its own and not empty"),
    (INDEX_AT + 8, "H", 99, INDEX_AT + 10, "A tensor's name must have 99 bytes, but only 33"),
    (INDEX_AT + 10, "B", 0xFF, INDEX_AT + 10, "A tensor's name must be UTF-8"),
    (INDEX_AT + 11, "Q", 1 << 40, INDEX_AT + 11, "The descriptor of tensor 'a' must lie between"),
    (INDEX_AT + 11, "Q", 0, INDEX_AT + 11, "The descriptor of tensor 'a' must lie between"),
    (INDEX_AT + 11, "Q", 66, INDEX_AT + 11, "must be at a multiple of 8, not at byte 66"),
    (INDEX_AT + 19, "I", 0xFFFFFFFF, INDEX_AT + 11, "not be 4294967295 bytes at byte 64"),
    (INDEX_AT + 19, "I", 52, 70, "must be given whole and alone, not as 52 bytes"),
    (INDEX_AT + 23, "Q", 1 << 63, INDEX_AT + 23, "The data of tensor 'a' must lie between"),
    (INDEX_AT + 23, "Q", 64, INDEX_AT + 23, "must be at a multiple of 4096, not at byte 64"),
    (INDEX_AT + 31, "Q", 17, INDEX_AT + 23, "The data of tensor 'a' must lie between"),
    (INDEX_AT + 31, "Q", 15, 4096, "The data of tensor 'a' must be 16 bytes, as its descriptor"),
    (INDEX_AT + 39, "I", 1, INDEX_AT + 39, "Reserved bytes of an entry of the index must be 0"),
    (64 + 10, "I", 4, 64 + 14, "must have a private element type (0xF0 to 0xFE), not tag 0x03"),
    (64 + 14, "B", 0xF2, 64 + 10, "must have an extension type section"),
    (64 + 37, "Q", 1 << 63, 4096, "must be 9223372036854775808 bytes, as its descriptor says"),
]


@pytest.mark.parametrize(("at", "form", "value", "offset", "message"), FAULTS)
def test_a_damaged_file_has_its_own_message_with_the_offset(
    path: Path, at: int, form: str, value: Any, offset: int, message: str
) -> None:
    path.write_bytes(put(small(path), at, form, value))
    with pytest.raises(hurray.InvalidFileError, match=re.escape(message)) as caught:
        hurray.load(path)
    assert caught.value.offset == offset
    assert str(caught.value).startswith(f"At byte {offset}: ")


@pytest.mark.parametrize(("at", "form", "value", "offset", "message"), INDEX_FAULTS)
def test_a_damaged_index_or_descriptor_has_its_own_message_with_the_offset(
    path: Path, at: int, form: str, value: Any, offset: int, message: str
) -> None:
    path.write_bytes(put(put(small(path), 12, "I", 0), at, form, value))
    with pytest.raises(hurray.InvalidDescriptorError, match=re.escape(message)) as caught:
        hurray.load(path)
    assert caught.value.offset == offset


def test_an_index_that_is_called_sorted_must_be(path: Path) -> None:
    made = hurray.from_numpy(np.zeros(1, np.float32))
    for names, fits in ((["a", "b"], True), (["b", "a"], False)):
        hurray.save(path, dict.fromkeys(names, made))
        path.write_bytes(put(path.read_bytes(), 12, "I", 0b110))
        if fits:
            assert list(hurray.load(path)) == names
        else:
            with pytest.raises(
                hurray.InvalidFileError, match="must ascend, not be 'a' behind b'b'"
            ):
                hurray.load(path)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (b"\xff\xff\xff\xff", "The number of key-values must be at most 0"),
        (b"\1\0\0\0\0\0\5\1", "A key must be of its own and not empty, not ''"),
        (b"\2\0\0\0\1\0k\5\1\1\0k\5\1", "not 'k', which is used twice"),
        (b"\1\0\0\0\1\0k\5\2", "A value of type bool must be 0 or 1, not 2"),
        (b"\1\0\0\0\1\0k\0\0", "The type of a value must be in 1..6, or 7"),
        (b"\1\0\0\0\1\0k\7\7\1\0\0\0", "The type of a value must be in 1..6"),
        (b"\1\0\0\0\1\0k\7\4\xff\xff\xff\xff", "A sequence must have at most 0 entries"),
        (b"\1\0\0\0\1\0k\1\xff\xff\xff\xff", "must have 4294967295 bytes, but only 0 are left"),
        (b"\1\0\0\0\1\0k\1\1\0\0\0\xff", "must be UTF-8"),
        (b"\1\0\0\0\1\0k\5\1x", "the key-values must end here, not 1 bytes later"),
    ],
)
def test_damaged_key_values_are_refused(path: Path, section: bytes, message: str) -> None:
    index = bytes(8)
    padded = section + bytes(-len(section) % 8)
    at = 64 + len(padded)
    hurray.save(path, {})
    trailer = struct.pack("<QQQII4x4s", at, 8, 64, len(section), crc32c(index), b"HRRY")
    path.write_bytes(path.read_bytes()[:64] + padded + index + trailer)
    with pytest.raises(hurray.InvalidFileError, match=re.escape(message)):
        hurray.load_kv(path)


def test_a_file_that_is_cut_off_anywhere_is_refused(path: Path) -> None:
    data = small(path, key=[1, 2])
    for length in reversed(range(len(data))):
        os.truncate(path, length)
        with pytest.raises(hurray.InvalidFileError):
            hurray.load(path)


def test_a_file_that_cannot_be_read_is_a_file_error(tmp_path: Path) -> None:
    for place in (tmp_path / "missing", tmp_path, tmp_path / "null\0"):
        with pytest.raises(hurray.FileError, match="must be a tensor file that can be read"):
            hurray.load(place)
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(hurray.FileError, match="must be a place that can be written"):
        hurray.save(tmp_path / "file" / "below", {})


def test_a_name_that_a_file_has_not_is_refused_with_those_that_it_has(path: Path) -> None:
    small(path)
    with pytest.raises(hurray.FileError, match="not 'b'") as caught:
        hurray.load(path, ["b"])
    assert caught.value.hint == "It has: 'a'."


def test_loaded_bytes_are_views_of_the_file(path: Path) -> None:
    small(path)
    loaded = hurray.load(path)["a"]
    assert isinstance(loaded.buffer(0).obj, mmap.mmap)
    array = loaded.numpy()
    assert not array.flags.owndata
    np.testing.assert_array_equal(array, [0, 1, 2, 3])


def test_a_tensor_outlives_its_file(path: Path) -> None:
    small(path)
    with hurray.HurrayFile(path) as file:
        assert ("a" in file, len(file), list(file)) == (True, 1, ["a"])
        loaded = file["a"]
    hurray.save(path, {})
    path.unlink()
    np.testing.assert_array_equal(loaded.numpy(), [0, 1, 2, 3])


def test_a_file_is_written_whole_or_not_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = small(path)

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(container, "encode_index", full)
    with pytest.raises(hurray.FileError, match="No space left on device"):
        small(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_many_threads_read_one_file(path: Path) -> None:
    made = {str(seed): tensor(hurray, Random(seed)) for seed in range(50)}
    hurray.save(path, made)
    shared = hurray.HurrayFile(path)

    def read(worker: int) -> int:
        file = shared if worker % 2 else hurray.HurrayFile(path)
        names = list(made)
        Random(worker).shuffle(names)
        for name in names:
            loaded = file[name]
            assert loaded.descriptor == made[name].descriptor
            for index in range(loaded.buffer_count):
                assert loaded.buffer(index) == made[name].buffer(index)
        return len(names)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(24))) == [50] * 24


def test_the_same_tensors_give_the_same_bytes(path: Path) -> None:
    assert small(path, k=1) == small(path, k=1)
    loaded = hurray.load(path)
    again = path.with_name("again.hrry")
    hurray.save(again, loaded, hurray.load_kv(path))
    assert again.read_bytes() == path.read_bytes()
