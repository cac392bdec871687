"""Files of ours in a folder: all of them or none, and never over somebody else's."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...ir.errors import UserError

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterable, Mapping

__all__ = ["SIGNATURE", "OutputFolderError", "check_folder", "write_files"]

SIGNATURE: Final = "Written by Scalebox"
"""What stands within the first lines of every file that we write."""

_SIGNED_BYTES: Final = 200
_WORKSHOP: Final = ".scalebox-"


class OutputFolderError(UserError):
    """A folder into which files cannot or should not be written."""


def write_files(
    directory: str | os.PathLike[str], files: Mapping[str, str], *, force: bool = False
) -> list[Path]:
    """Write files into a folder, whole or not at all.

    The folder is made if it is absent. What we wrote there before is replaced where it has the same
    name; nothing else is ever removed, but a file of the same name where that is forced.

    Args:
        directory: The folder.
        files: Text by name; each text is signed with :data:`SIGNATURE`.
        force: Write even where the folder holds what is not ours.

    Returns:
        The files written, in the order given.

    Raises:
        OutputFolderError: If the folder holds foreign files, or a folder where a file is to stand,
            or cannot be written.
    """
    assert all(SIGNATURE in text[:_SIGNED_BYTES] for text in files.values()), "all are signed"
    with _made(Path(directory), files, force=force) as folder:
        return _put(folder, files)


def check_folder(
    directory: str | os.PathLike[str], names: Iterable[str], *, force: bool = False
) -> None:
    """Make sure that files can be written into a folder, and leave everything as it was.

    Args:
        directory: The folder.
        names: Names of the files.
        force: Whether to write even where the folder holds what is not ours.

    Raises:
        OutputFolderError: As for :func:`write_files`.
    """
    with _made(Path(directory), names, force=force, keep=False) as folder:
        Path(tempfile.mkdtemp(dir=folder, prefix=_WORKSHOP)).rmdir()


@contextmanager
def _made(folder: Path, names: Iterable[str], *, force: bool, keep: bool = True) -> Generator[Path]:
    """Yield a folder that is there; unless it is kept and nothing fails, it then is as before."""
    is_kept = False
    try:
        absent = [path for path in (folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _refuse_folders(folder, names)
            if not force:
                _refuse_foreign(folder)
            yield folder
            is_kept = keep
        finally:
            for path in () if is_kept else absent:
                with suppress(OSError):
                    path.rmdir()
    except (OSError, ValueError) as error:  # a null character is a ValueError
        message = f"The output folder must be one that can be written, not {str(folder)!r}: {error}"
        raise OutputFolderError(message) from error


def _refuse_folders(folder: Path, names: Iterable[str]) -> None:
    """Refuse to put a file where a folder stands: with it all that it holds would go."""
    for name in names:
        if (folder / name).is_dir():
            message = f"{str(folder / name)!r} must be a place for a file, not a folder"
            hint = "Name another output folder, or move that one away; nothing in it is touched."
            raise OutputFolderError(message, hint=hint)


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
    workshop = Path(tempfile.mkdtemp(dir=folder, prefix=_WORKSHOP))
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
