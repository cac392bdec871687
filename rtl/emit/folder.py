"""Files of ours in a folder: all of them or none, and never over somebody else's."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...ir.errors import UserError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["SIGNATURE", "OutputFolderError", "write_files"]

SIGNATURE: Final = "Written by Scalebox"
"""What stands within the first lines of every file that we write."""

_SIGNED_BYTES: Final = 200


class OutputFolderError(UserError):
    """A folder into which files cannot or should not be written."""


def write_files(
    directory: str | os.PathLike[str], files: Mapping[str, str], *, force: bool = False
) -> list[Path]:
    """Write files into a folder, whole or not at all.

    The folder is made if it is absent. What we wrote there before is replaced where it has the same
    name; nothing else is ever removed.

    Args:
        directory: The folder.
        files: Text by name; each text is signed with :data:`SIGNATURE`.
        force: Write even where the folder holds what is not ours.

    Returns:
        The files written, in the order given.

    Raises:
        OutputFolderError: If the folder holds foreign files, or cannot be written.
    """
    assert all(SIGNATURE in text[:_SIGNED_BYTES] for text in files.values()), "all are signed"
    folder = Path(directory)
    try:
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        if not force:
            _refuse_foreign(folder)
        try:
            return _put(folder, files)
        except BaseException:
            if is_new:
                folder.rmdir()
            raise
    except (OSError, ValueError) as error:  # a null character is a ValueError
        message = f"The output folder must be one that can be written, not {str(folder)!r}: {error}"
        raise OutputFolderError(message) from error


def _refuse_foreign(folder: Path) -> None:
    foreign = sorted(entry.name for entry in folder.iterdir() if not _is_ours(entry))
    if foreign:
        shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        message = f"The output folder {str(folder)!r} must hold only files of ours, not {shown}"
        hint = "Name an empty folder, or force it (--force, force=True); what is not ours stays."
        raise OutputFolderError(message, hint=hint)


def _is_ours(entry: Path) -> bool:
    if not entry.is_file():
        return False
    with entry.open("rb") as file:
        return SIGNATURE.encode() in file.read(_SIGNED_BYTES)


def _put(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write beside, then move into place; on a failure move everything back."""
    workshop = Path(tempfile.mkdtemp(dir=folder, prefix=".scalebox-"))
    moved: list[Path] = []
    paths = [folder / name for name in files]
    try:
        for name, text in files.items():
            new = workshop / f"new-{name}"
            new.write_text(text, encoding="utf-8", newline="\n")
            new.chmod(0o644)
        try:
            for path in paths:
                if path.exists():
                    path.rename(workshop / f"old-{path.name}")
                moved.append(path)
                (workshop / f"new-{path.name}").replace(path)
        except BaseException:
            for path in moved:
                path.unlink(missing_ok=True)
                old = workshop / f"old-{path.name}"
                if old.exists():
                    old.rename(path)
            raise
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    return paths
