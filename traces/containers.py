"""Named arrays as the tensors of a file, block-scaled ones among them, and back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.errors import InputError, UserError
from ..ir.numerics.mxarray import MXArray
from .hurray import (
    MXFP,
    HurrayError,
    HurrayFile,
    Tensor,
    TiledLayout,
    VerbatimScheme,
    from_numpy,
    mx_array,
    mx_tensors,
)
from .hurray.boxes import NN, ZZ
from .hurray.file_format import MAGIC
from .hurray.mx import SCALES_SUFFIX, SCHEME, TENSOR_SCALE_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from .bits import Array

SUFFIX = ".hrry"
"""How the name of a tensor file ends."""


def is_container(path: Path) -> bool:
    """Return whether `path` is a file that begins as a tensor file does."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # a null character is a ValueError
        return False


def tensors_of(arrays: Mapping[str, Array | MXArray], prefix: str = "") -> dict[str, Tensor]:
    """Return the tensors that hold `arrays`, their names behind `prefix`.

    Raises:
        InputError: An array is of a type that the format has not, or two need the same name.
    """
    found: dict[str, Tensor] = {}
    for name, array in arrays.items():
        try:
            is_mx = isinstance(array, MXArray)
            parts = mx_tensors(name, array) if is_mx else {name: from_numpy(array)}
        except HurrayError as error:
            message = f"{name!r} must be an array that a tensor file can hold: {error.message}"
            raise InputError(message, hint=error.hint) from error
        for part, tensor in parts.items():
            if prefix + part in found:
                message = f"{name!r} must have another name: the file needs {part!r} itself"
                raise InputError(message)
            found[prefix + part] = tensor
    return found


def arrays_of(tensors: Mapping[str, Tensor], prefix: str = "") -> dict[str, Array | MXArray]:
    """Return the arrays of the tensors whose names begin with `prefix`.

    A tensor of scales in the boxes of the machine's memory comes in box order, as an input in an MX
    layout is given.

    Raises:
        UserError: A tensor has no numpy type, or the parts of a block-scaled array do not fit.
    """
    parts = {name for each in tensors for name in _parts(each, tensors)}
    return {
        name.removeprefix(prefix): _array(name, tensors)
        for name in tensors
        if name.startswith(prefix) and name not in parts
    }


def load_container(path: Path) -> dict[str, Array | MXArray]:
    """Return the arrays of a tensor file; their bytes are read-only and stay where they lie.

    Raises:
        InputError: The file cannot be read, breaks a rule of its format, or holds a tensor that is
            no array.
    """
    try:
        with HurrayFile(path) as file:
            return arrays_of({name: file[name] for name in file.names})
    except UserError as error:
        message = f"{path} must be a tensor file of arrays: {error.message}"
        raise InputError(message, hint=error.hint) from error


def load_listed(path: Path) -> dict[str, Array | MXArray | Tensor]:
    """Return what a tensor file holds, as far as it can be: a tensor that is no array as it is.

    Raises:
        InputError: The file cannot be read, or breaks a rule of its format.
    """
    try:
        with HurrayFile(path) as file:
            tensors = {name: file[name] for name in file.names}
    except UserError as error:
        message = f"{path} must be a tensor file: {error.message}"
        raise InputError(message, hint=error.hint) from error
    found: dict[str, Array | MXArray | Tensor] = {}
    parts = set[str]()
    for name, tensor in tensors.items():
        try:
            found[name] = _array(name, tensors)
        except UserError:
            found[name] = tensor
        else:
            parts.update(_parts(name, tensors))
    return {name: each for name, each in found.items() if name not in parts}


def _parts(name: str, tensors: Mapping[str, Tensor]) -> Iterable[str]:
    """Return the names of the tensors that belong to a block-scaled one."""
    if _scheme(tensors[name]) != SCHEME:
        return ()
    return (name + SCALES_SUFFIX, name + TENSOR_SCALE_SUFFIX)


def _scheme(tensor: Tensor) -> int | None:
    scheme = tensor.quantization
    return scheme.scheme if isinstance(scheme, VerbatimScheme) else None


def _array(name: str, tensors: Mapping[str, Tensor]) -> Any:
    tensor = tensors[name]
    if isinstance(tensor.quantization, MXFP) or _scheme(tensor) == SCHEME:
        return mx_array(name, tensors)
    if isinstance(tensor.layout, TiledLayout) and tensor.layout in (ZZ, NN):
        return _in_box_order(tensor, tensor.layout.tile_shape)
    return tensor.codes() if tensor.extension_type is not None else tensor.numpy()


def _in_box_order(tensor: Tensor, box: Sequence[int]) -> Array:
    """Return the bytes of a matrix of boxes as they stand, in the shape of whole boxes."""
    logical = tensor.numpy()
    shape = [extent + -extent % tile for extent, tile in zip(logical.shape, box, strict=True)]
    return np.frombuffer(tensor.buffer(0), logical.dtype, math.prod(shape)).reshape(shape)
