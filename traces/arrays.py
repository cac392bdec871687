"""Named arrays in an `.npz` file, those of ml_dtypes and block-scaled ones among them.

numpy's format cannot name the types of ml_dtypes: their bit patterns are stored as unsigned integers
under the array's own name. A block-scaled array `x` is stored as `x.elements`, `x.scales` and, where
it has one, `x.tensor_scale`. A member :data:`TYPES` holds a JSON object of what is not as it seems:
`{"c": "bfloat16", "x": {"dtype": "MXFP8_E4M3", "axis": 1}}`. The same arrays always give the same
bytes.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np

from ..ir.dtypes import BlockScaledDType
from ..ir.errors import InputError, UserError
from ..ir.numerics.mxarray import MXArray
from .bits import ElementType, is_of_ml_dtypes, without_void
from .whole import written_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .bits import Array

TYPES = "__types__"
"""Name of the member that tells which members are not plain arrays of numpy's own types."""

_EARLIEST = (1980, 1, 1, 0, 0, 0)
_SUFFIX = ".npy"
_ELEMENTS = ".elements"
_ZIP, _NPY = b"PK", b"\x93NUMPY"
_NO_ARCHIVE = "it is no archive"

UNREADABLE = (
    EOFError,
    MemoryError,  # a damaged header may promise any size
    OSError,
    RuntimeError,  # an encrypted archive, or a feature that zipfile has not
    TokenError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What numpy raises for a file that it cannot read."""


def save_arrays(path: Path, arrays: Mapping[str, Array | MXArray]) -> None:
    """Write `arrays` to an `.npz` file, whole or not at all.

    Args:
        path: The file.
        arrays: By name: block-scaled arrays, or arrays of numbers of numpy's own types or of
            ml_dtypes.

    Raises:
        InputError: An array holds something else, two need the same name in the file, or the file
            cannot be written.
    """
    types: dict[str, Any] = {}
    members: dict[str, Array] = {}
    for name, array in arrays.items():
        parts, type_of = _parts(name, array)
        taken = sorted(parts.keys() & members.keys() | parts.keys() & {TYPES})
        if taken:
            message = f"{name!r} must have another name: the file needs {taken[0]!r} itself"
            raise InputError(message)
        members |= parts
        if type_of is not None:
            types[name] = type_of
    if types:
        members[TYPES] = np.array(json.dumps(types, sort_keys=True))
    with written_whole(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in members.items():
            entry = zipfile.ZipInfo(name + _SUFFIX, _EARLIEST)
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load_arrays(path: Path) -> dict[str, Array | MXArray]:
    """Return the arrays of an `.npz` file, as :func:`save_arrays` or `numpy.savez` wrote it.

    They come in the order in which they were written. What `numpy.savez` wrote of the types of
    ml_dtypes comes as unsigned integers: such a file does not tell which type it was.

    Raises:
        InputError: The file cannot be read, is no `.npz` file, or says of its members what is not so.
    """
    try:
        with path.open("rb") as file:
            beginning = file.read(len(_NPY))
            file.seek(0)
            # Of anything else, numpy would say that it is a pickle.
            if not beginning.startswith((_ZIP, _NPY)):
                raise ValueError(_NO_ARCHIVE)
            archive: Any = np.load(file, allow_pickle=False)
            members = _members(archive) if isinstance(archive, np.lib.npyio.NpzFile) else None
    except UNREADABLE as error:
        message = f"{path} must be an .npz file that can be read: {error}"
        raise InputError(message) from error
    if members is None:
        message = f"{path} must be an .npz file, not a single array"
        raise InputError(message)
    types = _types(path, members.pop(TYPES, None))
    order = {name.removesuffix(_ELEMENTS): at for at, name in reversed([*enumerate(members)])}
    restored = {name: _restored(path, name, types[name], members) for name in types}
    found = {**members, **restored}
    return {name: found[name] for name in sorted(found, key=lambda name: order.get(name, -1))}


def _parts(name: str, array: Array | MXArray) -> tuple[dict[str, Array], Any]:
    """Return the members that hold `array`, and what :data:`TYPES` says of it, if anything."""
    if isinstance(array, MXArray):
        parts: dict[str, Array] = {
            name + _ELEMENTS: array.elements,
            f"{name}.scales": array.scales,
        }
        if array.tensor_scale is not None:
            parts[f"{name}.tensor_scale"] = np.array(array.tensor_scale)
        return parts, {"dtype": array.dtype.name, "axis": array.axis}
    array = without_void(array)
    kind = ElementType.of(array.dtype)
    if kind is None:
        message = f"{name!r} must be an array of integers or floats, not of {array.dtype}"
        raise InputError(message)
    if not is_of_ml_dtypes(array.dtype):
        return {name: array}, None
    return {name: array.view(f"u{array.dtype.itemsize}")}, kind.name


def _members(archive: Any) -> dict[str, Array]:
    with archive:
        return {str(name): without_void(archive[name]) for name in archive.files}


def _types(path: Path, text: Array | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        types = json.loads(str(text))
    except ValueError:
        types = None
    if not isinstance(types, dict):
        message = f"the member {TYPES} of {path} must be a JSON object of types"
        raise InputError(message)
    return cast("dict[str, Any]", types)


def _restored(path: Path, name: str, type_of: Any, members: dict[str, Array]) -> Array | MXArray:
    """Take the members of one array out of `members` and return it with its true type."""
    match type_of:
        case str():
            return _of_ml_dtypes(path, name, type_of, members)
        case {"dtype": str(dtype_name), "axis": int(axis)}:
            elements = _taken(path, name + _ELEMENTS, members)
            scales = _taken(path, f"{name}.scales", members)
            tensor_scale = members.pop(f"{name}.tensor_scale", None)
            try:
                dtype = BlockScaledDType.from_name(dtype_name)
                return MXArray(elements, scales, dtype, axis, cast("Any", tensor_scale))
            except UserError as error:
                message = f"{name!r} of {path} must be a block-scaled array: {error.message}"
                raise InputError(message) from error
        case _:
            message = (
                f"the type of {name!r} in {path} must be the name of a type of ml_dtypes, or the "
                f"dtype and the axis of a block-scaled array, not {type_of!r}"
            )
            raise InputError(message)


def _of_ml_dtypes(path: Path, name: str, type_name: str, members: dict[str, Array]) -> Array:
    scalar = getattr(ml_dtypes, type_name, None)
    if not isinstance(scalar, type) or ElementType.of(np.dtype(scalar)) is None:
        message = f"{name!r} of {path} must have a type of ml_dtypes, not {type_name!r}"
        raise InputError(message)
    words = _taken(path, name, members)
    dtype = np.dtype(scalar)
    carrier = np.dtype(f"u{dtype.itemsize}")
    if words.dtype != carrier:
        message = f"{name!r} of {path} must be {carrier}, not {words.dtype}"
        raise InputError(message)
    return words.view(dtype)


def _taken(path: Path, name: str, members: dict[str, Array]) -> Array:
    if name not in members:
        message = f"{path} must hold the array {name!r} that its member {TYPES} names"
        raise InputError(message)
    return members.pop(name)
