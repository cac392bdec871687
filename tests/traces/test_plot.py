"""The picture of differences: a PNG by its own rules, and the colours where they should be."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalebox.ir.errors import InputError
from scalebox.traces.examine import examine
from scalebox.traces.plot import plot
from scalebox.traces.rules import parse_rule

EQUAL, VIOLET, EDGE = (238, 238, 238), (150, 40, 200), (60, 110, 200)


def drawn(tmp_path: Path, actual: Any, golden: Any, tile: Any = None) -> np.ndarray:
    """Return the pixels of the picture, `[rows, cols, 3]`, decoded chunk by chunk."""
    pairs = examine(actual, golden, parse_rule("exact"))
    plot(tmp_path / "map.png", pairs, dict.fromkeys(pairs, tile))
    data = (tmp_path / "map.png").read_bytes()
    assert data[:8] == bytes([137, 80, 78, 71, 13, 10, 26, 10])
    at = 8
    chunks: dict[bytes, bytes] = {}
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(kind + body),)
        chunks[kind], at = body, at + 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    cols, rows, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, 1 + 3 * cols)
    assert not lines[:, 0].any()  # no filter
    return lines[:, 1:].reshape(rows, cols, 3)


GOLDEN = np.ones((32, 64), np.float32)


def test_every_element_is_a_square_of_its_colour(tmp_path: Path) -> None:
    actual = GOLDEN.copy()
    actual[3, 5] = np.nextafter(np.float32(1), np.float32(2))
    actual[20, 60] = -1e30
    actual[31, 0] = np.nan
    image = drawn(tmp_path, actual, GOLDEN)
    assert image.shape == (32 * 8, 64 * 8, 3)
    squares = image.reshape(32, 8, 64, 8, 3)
    assert (squares == squares[:, :1, :, :1]).all()
    marks = squares[:, 0, :, 0]
    assert tuple(marks[0, 0]) == EQUAL
    assert tuple(marks[31, 0]) == VIOLET
    red, green, _ = marks[3, 5]
    assert (red > 240, green > 200) == (True, True)
    red, green, _ = marks[20, 60]
    assert (100 < red < 140, green < 20) == (True, True)
    assert (marks != EQUAL).any(axis=-1).sum() == 3


def test_the_edges_of_tiles_are_lines(tmp_path: Path) -> None:
    image = drawn(tmp_path, GOLDEN, GOLDEN, tile=(16, 32))
    lines = (image == EDGE).all(axis=-1)
    assert [int(row) for row in np.flatnonzero(lines.all(axis=1))] == [0, 128]
    assert [int(col) for col in np.flatnonzero(lines.all(axis=0))] == [0, 256]


def test_one_wrong_element_of_many_is_seen(tmp_path: Path) -> None:
    golden = np.zeros((5000, 300), np.float32)
    actual = golden.copy()
    actual[4321, 123] = 1
    image = drawn(tmp_path, actual, golden)
    assert max(image.shape) <= 2048
    places = np.argwhere((image != EQUAL).any(axis=-1))
    assert places.tolist() == [[4321 // 3, 123 // 3]]


def test_outputs_stand_below_each_other(tmp_path: Path) -> None:
    arrays = {"a": GOLDEN, "s": np.float32(1), "v": np.ones(40), "none": np.zeros((0, 4))}
    image = drawn(tmp_path, arrays, arrays)
    heights = (256, 16, 12, 1)
    assert image.shape == (sum(heights) + 3 * 8, 512, 3)


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    pairs = examine(GOLDEN, GOLDEN, parse_rule("exact"))
    with pytest.raises(InputError, match="must be a place that can be written"):
        plot(tmp_path / "file" / "map.png", pairs)
