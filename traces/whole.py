"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..ir.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def written_whole(path: Path) -> Generator[Path]:
    """Yield a path to write to; what stands there at the end is moved to `path` in one step.

    The path lies in a new folder beside `path`, which is gone afterwards, come what may. A file
    replaces a file, and a folder a folder.

    Args:
        path: Where the file or folder shall appear. Its parent is made if need be.

    Raises:
        InputError: The place cannot be written.
    """
    path = path.absolute()
    try:
        is_other = path.exists() and not path.is_file() and not path.is_dir()
        path.parent.mkdir(parents=True, exist_ok=True)
        workshop = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    except (OSError, ValueError) as error:  # a null character is a ValueError
        raise _unwritable(path, error) from error
    try:
        if is_other:
            message = f"{path} must be a file, a folder or a free place, not a device"
            raise InputError(message)
        temporary = workshop / "new"
        yield temporary
        if temporary.is_dir() and path.is_dir():
            _replace_folder(temporary, path, workshop / "old")
        else:
            temporary.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _replace_folder(new: Path, path: Path, old: Path) -> None:
    try:
        path.rename(old)
        new.rename(path)
    finally:  # also where the user interrupts between the two
        if old.exists() and not path.exists():
            old.rename(path)


def _unwritable(path: Path, error: OSError | ValueError) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else None
    return InputError(f"{path} must be a place that can be written: {reason or error}")
