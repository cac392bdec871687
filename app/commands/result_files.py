"""Arrays on disk, as the command line names them: inputs, outputs and golden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.errors import InputError
from ...traces.arrays import UNREADABLE, load_arrays
from ...traces.bits import without_void
from ...traces.bundle import Bundle, is_bundle, load_bundle
from ...traces.containers import is_container, load_container
from ..drawn_inputs import given_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FORMS = "an .npz, .npy or .hrry file or a bundle"
"""What may hold arrays."""


@dataclass(frozen=True)
class Results:
    """What is compared.

    Attributes:
        arrays: Outputs by name, or the only array of an `.npy` file.
        bundle: The run that they come from, if they come from a bundle.
    """

    arrays: Any
    bundle: Bundle | None = None


def read_results(path: Path) -> Results:
    """Return the arrays of a file, or the outputs of a bundle.

    Raises:
        InputError: When there is nothing at `path`, or nothing that holds arrays.
    """
    if not is_bundle(path):
        return Results(read_arrays(path, "What is compared"))
    bundle = load_bundle(path)
    if bundle.outputs is None:
        message = f"The bundle {str(path)!r} must hold outputs to be compared; it has none"
        raise InputError(message)
    return Results(bundle.outputs, bundle)


def read_inputs(paths: Sequence[Path]) -> dict[str, Any]:
    """Return launch inputs from files; the array of an `.npy` file is named as the file is.

    Raises:
        InputError: When a file does not hold arrays, or two give the same input.
    """
    found: dict[str, Any] = {}
    for path in paths:
        given = load_bundle(path).inputs if is_bundle(path) else read_arrays(path, "Inputs")
        named: Mapping[str, Any] = {path.stem: given} if isinstance(given, np.ndarray) else given
        twice = sorted(found.keys() & named.keys())
        if twice:
            message = f"The input {twice[0]!r} must be given once, but {path} gives it again"
            raise InputError(message)
        found |= given_inputs(named)
    return found


def read_golden(path: Path, outputs: Sequence[str]) -> dict[str, Any]:
    """Return what outputs should be; the array of an `.npy` file is the only output, or as named.

    Raises:
        InputError: When `path` does not hold arrays.
    """
    arrays = read_results(path).arrays
    if isinstance(arrays, np.ndarray):
        return {outputs[0] if len(outputs) == 1 else path.stem: arrays}
    return dict(arrays)


def read_arrays(path: Path, what: str) -> Any:
    """Return the arrays of a file by name, or the only array of an `.npy` file.

    Args:
        path: An `.npz`, `.npy` or `.hrry` file.
        what: What it should hold, at the beginning of a sentence.

    Raises:
        InputError: There is nothing at `path`, or nothing that holds arrays.
    """
    if path.is_dir():
        message = f"{what} must be {FORMS}, which the folder {str(path)!r} is not"
        raise InputError(message)
    if not path.is_file():
        message = f"{what} must be {FORMS}, and there is no file {str(path)!r}"
        raise InputError(message)
    if is_container(path):
        return load_container(path)
    if path.suffix == ".npy":
        try:
            return without_void(np.load(path, allow_pickle=False))
        except UNREADABLE as error:
            message = f"{str(path)!r} must be an .npy file that can be read: {error}"
            raise InputError(message) from error
    return load_arrays(path)
