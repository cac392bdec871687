"""The bytes of an executable: a preamble, a JSON header and a payload of instruction words.

| offset | bytes | what |
|---|---|---|
| 0 | 8 | magic, `SCALEBOX` |
| 8 | 2 | major version; a reader refuses a newer one |
| 10 | 2 | minor version; a newer one only adds keys to the header |
| 12 | 4 | length of the header in bytes |
| 16 | 8 | length of the payload in bytes |
| 24 | 4 | CRC-32 of everything else, in order |
| 28 | | header, UTF-8 JSON, then payload, 16 bytes an instruction |

Numbers are unsigned and little-endian. Nothing follows the payload.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...ir.errors import ExecutableError

if TYPE_CHECKING:
    from .records import Json

MAGIC = b"SCALEBOX"
MAJOR = 2
MINOR = 3
_PREAMBLE = struct.Struct("<8sHHIQ")
_CRC = struct.Struct("<I")
_START = _PREAMBLE.size + _CRC.size


class Content(NamedTuple):
    """What a container holds.

    Args:
        header: Parsed JSON.
        payload: Instruction words.
        newer: Whether a newer minor version wrote it, so that unknown keys are no mistake.
        minor: The minor version that wrote it.
    """

    header: object
    payload: bytes
    newer: bool
    minor: int


def pack(header: Json, payload: bytes) -> bytes:
    """Return the bytes of a container."""
    text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    preamble = _PREAMBLE.pack(MAGIC, MAJOR, MINOR, len(text), len(payload))
    crc = zlib.crc32(payload, zlib.crc32(text, zlib.crc32(preamble)))
    return preamble + _CRC.pack(crc) + text + payload


def unpack(data: bytes) -> Content:
    """Return what the bytes of a container hold.

    Raises:
        ExecutableError: If they are no container, one of a newer major version, of the wrong
            length, or damaged.
    """
    if not isinstance(data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"An executable must be bytes, not a {type(data).__name__}."
        raise ExecutableError(message)
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        message = f"An executable must begin with {MAGIC!r}, not {data[: len(MAGIC)]!r}."
        raise ExecutableError(message)
    if len(data) < _START:
        message = (
            f"An executable must have at least {_START} bytes, not {len(data)}: it is cut off."
        )
        raise ExecutableError(message)
    _, major, minor, header_length, payload_length = _PREAMBLE.unpack_from(data)
    if major != MAJOR:
        message = f"An executable must be of format version {MAJOR}, not {major}.{minor}."
        raise ExecutableError(message, hint="compile it again with this release")
    total = _START + header_length + payload_length
    if len(data) != total:
        how = "it is cut off" if len(data) < total else "something follows it"
        message = f"This executable must have {total} bytes, not {len(data)}: {how}."
        raise ExecutableError(message)
    (stored,) = _CRC.unpack_from(data, _PREAMBLE.size)
    found = zlib.crc32(data[_START:], zlib.crc32(data[: _PREAMBLE.size]))
    if stored != found:
        message = (
            f"This executable's CRC-32 must be {stored:#010x}, not {found:#010x}: it is damaged."
        )
        raise ExecutableError(message)
    body = _START + header_length
    return Content(_parse(data[_START:body]), data[body:], minor > MINOR, minor)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of the container at `path`.

    Raises:
        ExecutableError: If there is no regular file, or it cannot be read.
    """
    place = _path(path)
    try:
        data = place.read_bytes() if place.is_file() else None
    except (OSError, ValueError) as error:
        message = f"The executable {str(path)!r} must be readable, which it is not: {error}."
        raise ExecutableError(message) from error
    if data is None:
        message = f"An executable must be a file, which {str(path)!r} is not."
        raise ExecutableError(message)
    return data


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path`, whole or not at all.

    Raises:
        ExecutableError: If the folder or the file cannot be written, or something else than a file
            stands there.
    """
    place = _path(path)
    try:
        if not place.name or (place.exists() and not place.is_file()):
            what = "folder" if not place.name or place.is_dir() else "device"
            message = f"An executable must be written to a file, not to the {what} {str(path)!r}."
            raise ExecutableError(message)
        temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(data)
            temporary.replace(place)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        message = f"The executable {str(path)!r} must be writable, which it is not: {error}."
        raise ExecutableError(message) from error


def _path(given: str | os.PathLike[str]) -> Path:
    try:
        path = Path(given)
    except TypeError as error:
        message = f"The path of an executable must be a string or a path, not {given!r}."
        raise ExecutableError(message) from error
    if "\0" in str(path):
        message = f"The path of an executable must be free of null characters, not {str(path)!r}."
        raise ExecutableError(message)
    return path


def _parse(text: bytes) -> object:
    try:
        return json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        message = f"The header of an executable must be UTF-8 JSON, which this one is not: {error}."
        raise ExecutableError(message) from error
