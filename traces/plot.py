"""The differences of two results as a picture, a PNG without any library.

| colour | element |
|---|---|
| light grey | equal by the rule |
| yellow to dark red | differs: the darker, the more units in the last place |
| violet | NaN or infinity on one side only |

Outputs stand one below the other. A pixel, or a square of pixels, is an element; of large outputs, a
pixel is the worst of several elements. Blue lines are the edges of tiles.
"""

from __future__ import annotations

import math
import struct
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from .difference_map import as_matrix
from .whole import written_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .examine import Pair

Image = npt.NDArray[np.uint8]

_LEVELS: Final = 64
_SPECIAL: Final = _LEVELS + 1
_LARGEST, _SMALLEST, _MOST_ZOOM = 2048, 512, 16
_LEAST_FOR_EDGES = 4
_GAP = 8
_EQUAL, _EDGE, _BACK = (238, 238, 238), (60, 110, 200), (255, 255, 255)
_NEAR, _FAR, _ODD = (255, 215, 60), (120, 0, 0), (150, 40, 200)
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_RGB: Final = 2

LEGEND: Final = (
    "grey is equal, yellow to dark red differs by more and more ulps, violet is NaN or infinity on "
    "one side only, blue lines are the edges of tiles"
)
"""What the colours mean."""


def plot(
    path: Path, pairs: Mapping[str, Pair], tiles: Mapping[str, Sequence[int] | None] | None = None
) -> None:
    """Write a picture of where outputs differ, whole or not at all.

    Args:
        path: The PNG file.
        pairs: Outputs by name.
        tiles: Shapes of the tiles in which they were made, where they are known.

    Raises:
        InputError: The file cannot be written.
    """
    with np.errstate(invalid="ignore"):  # signalling NaNs are no accidents here
        images = [_image(pair, (tiles or {}).get(name)) for name, pair in pairs.items()]
    wide = max((image.shape[1] for image in images), default=1)
    rows: list[Image] = []
    for image in images:
        rows.append(_filled(_BACK, (_GAP if rows else 0, wide)))
        rest = _filled(_BACK, (image.shape[0], wide - image.shape[1]))
        rows.append(np.concatenate([image, rest], axis=1))
    whole = np.concatenate(rows) if rows else _filled(_BACK, (1, 1))
    with written_whole(path) as temporary:
        temporary.write_bytes(_png(whole if whole.size else _filled(_BACK, (1, 1))))


def _image(pair: Pair, tile: Sequence[int] | None) -> Image:
    """Return one output as pixels, `[rows, cols, 3]`."""
    levels = _levels(pair)
    rows, cols = levels.shape
    if not levels.size:
        return _filled(_BACK, (1, 1))
    shrink = math.ceil(max(rows, cols) / _LARGEST)
    zoom = max(1, min(_MOST_ZOOM, _SMALLEST // max(rows, cols)))
    for axis in (0, 1):
        starts = range(0, levels.shape[axis], shrink)
        levels = np.maximum.reduceat(levels, starts, axis=axis)
    image = _palette()[levels.repeat(zoom, axis=0).repeat(zoom, axis=1)]
    if tile and shrink == 1 and zoom >= _LEAST_FOR_EDGES:
        image[:: zoom * (tile[-2] if len(tile) > 1 else 1)] = _EDGE
        image[:, :: zoom * tile[-1]] = _EDGE
    return image


def _levels(pair: Pair) -> npt.NDArray[np.intp]:
    """Return how bad each element is: 0 for equal, then by the logarithm of its distance."""
    levels = np.zeros(pair.golden.size, np.intp)
    bits = np.log2(pair.ulps.astype(np.float64) + 1) / pair.kind.bits
    levels[pair.places] = 1 + np.minimum(_LEVELS - 1, (bits * _LEVELS).astype(np.intp))
    levels[pair.places[~pair.finite]] = _SPECIAL
    return as_matrix(levels.reshape(pair.golden.shape))


def _palette() -> Image:
    share = np.linspace(0, 1, _LEVELS)[:, None]
    ramp = np.array(_NEAR) * (1 - share) + np.array(_FAR) * share
    return np.concatenate([[_EQUAL], ramp, [_ODD]]).astype(np.uint8)


def _filled(colour: tuple[int, int, int], size: tuple[int, int]) -> Image:
    return np.broadcast_to(np.array(colour, np.uint8), (*size, 3)).copy()


def _png(image: Image) -> bytes:
    """Return an image as a PNG file of 8-bit RGB (ISO/IEC 15948), no filter on any line."""
    rows, cols, _ = image.shape
    lines = np.zeros((rows, 1 + 3 * cols), np.uint8)
    lines[:, 1:] = image.reshape(rows, 3 * cols)
    header = struct.pack(">IIBBBBB", cols, rows, 8, _RGB, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
