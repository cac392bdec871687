"""Results on disk, for the compare command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.errors import InputError
from ..traces.arrays import UNREADABLE, load_arrays
from ..traces.bundle import is_bundle, load_bundle

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def read_results(path: Path) -> Any:
    """Return the arrays of a file or the outputs of a bundle, for `compare`.

    Raises:
        InputError: When there is nothing at `path`, or nothing that holds arrays.
    """
    if path.is_dir():
        if not is_bundle(path):
            message = f"A folder to compare must be a bundle, and {str(path)!r} is none"
            raise InputError(message)
        outputs: Mapping[str, Any] | None = load_bundle(path).outputs
        if outputs is None:
            message = f"The bundle {str(path)!r} must hold outputs to be compared; it has none"
            raise InputError(message)
        return outputs
    if not path.is_file():
        message = f"What is compared must be an .npz or .npy file or a bundle, not {str(path)!r}"
        raise InputError(message)
    if path.suffix == ".npy":
        try:
            return np.load(path, allow_pickle=False)
        except UNREADABLE as error:
            message = f"{str(path)!r} must be an .npy file that can be read: {error}"
            raise InputError(message) from error
    return load_arrays(path)
