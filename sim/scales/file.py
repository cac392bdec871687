"""Recorded box streams as `.npz` files, written whole and read with suspicion."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.scale_unit import BEATS_BYTES, START
from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS
from ...ir.errors import InputError
from ...traces.arrays import UNREADABLE
from .feed import Handshakes, Surroundings
from .stream import A_BOX, B_BOX, PLACES, SHAPE, ScaleStream

if TYPE_CHECKING:
    import numpy.typing as npt

    Bits = npt.NDArray[np.uint8]

VERSION: Final = 1
LONGEST_CYCLES: Final = 1 << 16
"""A head or a read beyond this would make waiting all that is recorded."""

_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
_SURROUNDINGS: Final = ("beat_bytes", "read_cycles", "head_cycles")
_TABLES: Final = {
    "version": (np.int64, ()),
    "surroundings": (np.int64, (len(_SURROUNDINGS),)),
    "shapes": (np.uint16, (-1, len(START))),
    "cycles": (np.int64, (-1,)),
    "given": (np.uint8, (-1,)),
    "answered": (np.uint8, (-1,)),
    "mads": (np.int64, (-1, len(PLACES))),
    "a_boxes": (np.uint8, (-1, BOX_BYTES)),
    "b_boxes": (np.uint8, (-1, BOX_BYTES)),
}
"""Members of the file and their types; -1 stands for any number.

`shapes` are the different start words, `cycles` how long each takes, and `given` and `answered` the
handshakes of one after another. A line of `mads` has the task and the instruction of its kernel, where
its boxes begin in `a_boxes` and `b_boxes`, by tile and then by block, and its shape.
"""


def stream_to_bytes(stream: ScaleStream) -> bytes:
    """Return a stream as an `.npz` file; the same stream always gives the same bytes."""
    given = [known.given for known in stream.handshakes]
    members: dict[str, npt.NDArray[Any]] = {
        "version": np.array(VERSION, np.int64),
        "surroundings": np.array(
            [getattr(stream.around, name) for name in _SURROUNDINGS], np.int64
        ),
        "shapes": stream.shapes,
        "cycles": np.array([len(each) for each in given], np.int64),
        "given": _joined(given),
        "answered": _joined([known.answered for known in stream.handshakes]),
        "mads": stream.mads,
        "a_boxes": stream.a_boxes,
        "b_boxes": stream.b_boxes,
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, values in members.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    return file.getvalue()


def stream_from_bytes(data: bytes) -> ScaleStream:
    """Return the stream that :func:`stream_to_bytes` wrote.

    Raises:
        InputError: If the bytes are something else.
    """
    members = _members(data)
    _check_tables(members)
    ends = np.cumsum(members["cycles"])
    begins = ends - members["cycles"]
    around = dict(zip(_SURROUNDINGS, members["surroundings"].tolist(), strict=True))
    return ScaleStream(
        Surroundings(**around),
        members["shapes"],
        tuple(
            Handshakes(members["given"][begin:end], members["answered"][begin:end], 1)
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ),
        members["mads"],
        members["a_boxes"],
        members["b_boxes"],
    )


def _members(data: bytes) -> dict[str, npt.NDArray[Any]]:
    try:
        # Of anything else than an archive, numpy would say that it is a pickle.
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [name for name in _TABLES if f"{name}.npy" in archive.namelist()]
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names}
    except UNREADABLE as error:
        message = f"Recorded scales must be an .npz file that can be read: {error}"
        raise InputError(message) from error


def _joined(parts: list[Bits]) -> Bits:
    return np.concatenate(parts) if parts else np.zeros(0, np.uint8)


def _check_tables(members: dict[str, npt.NDArray[Any]]) -> None:
    """Refuse members that cannot be those of a stream."""
    for name, (kind, shape) in _TABLES.items():
        found = members.get(name)
        fits = (
            found is not None
            and found.dtype == kind
            and found.ndim == len(shape)
            and all(length in (-1, size) for length, size in zip(shape, found.shape, strict=True))
        )
        if not fits:
            is_there = "is missing" if found is None else f"is {found.dtype} {list(found.shape)}"
            wanted = f"{np.dtype(kind)} {list(shape)}"
            message = f"Recorded scales must hold {name!r} as {wanted}, which {is_there}"
            raise InputError(message)
    version = int(members["version"])
    if version != VERSION:
        message = f"Recorded scales must be of version {VERSION}, not {version}"
        raise InputError(message)
    if not (_can_be_built(members) and _fits_together(members)):
        message = "Recorded scales must agree with one another, which they do not"
        raise InputError(message)


def _can_be_built(members: dict[str, npt.NDArray[Any]]) -> bool:
    """Return whether there is such a unit among such things, and whether it can start such mads."""
    beat_bytes, read_cycles, head_cycles = members["surroundings"].tolist()
    shapes = members["shapes"].astype(np.int64)
    most = np.array([(1 << field.bits) - 1 for field in START])
    return (
        beat_bytes in BEATS_BYTES
        and 1 <= read_cycles <= LONGEST_CYCLES
        and 0 <= head_cycles <= LONGEST_CYCLES
        and bool((shapes[:, :-1] >= 1).all())
        and bool((shapes <= most).all())
    )


def _fits_together(members: dict[str, npt.NDArray[Any]]) -> bool:
    """Return whether shapes, handshakes, mads and boxes fit together."""
    shapes, cycles, mads = members["shapes"], members["cycles"], members["mads"]
    room = len(members["given"])
    if len(shapes) != len(cycles) or room != len(members["answered"]):
        return False
    if not bool(((cycles >= 1) & (cycles <= room)).all()) or int(cycles.sum()) != room:
        return False
    if bool((mads < 0).any()) or bool((mads[:, SHAPE] >= len(shapes)).any()):
        return False
    rows, columns, groups = shapes[:, :3].astype(np.int64).T
    blocks = -(-groups // BOX_GROUPS)
    return all(
        bool((mads[:, column] <= len(members[name]) - (tiles * blocks)[mads[:, SHAPE]]).all())
        for column, tiles, name in ((A_BOX, rows, "a_boxes"), (B_BOX, columns, "b_boxes"))
    )
