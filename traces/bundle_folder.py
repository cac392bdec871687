"""The folder form of a bundle: a file a member, and a manifest of sizes and digests."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, cast

from ..ir.errors import InputError
from .arrays import load_arrays, save_arrays
from .bundle_format import FORMAT, MANIFEST, MEMBERS, OPTIONS, ROLES, VERSION
from .whole import written_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ..ir.numerics.mxarray import MXArray
    from .bits import Array

    Arrays = Mapping[str, Array | MXArray]
    Members = Mapping[str, bytes | Iterable[bytes]]

_SUFFIX = ".npz"
_INPUTS = ROLES[0] + _SUFFIX
_FILES = (*(role + _SUFFIX for role in ROLES), *MEMBERS)


def write_folder(path: Path, arrays: Mapping[str, Arrays], members: Members) -> None:
    """Write a bundle as a folder.

    Args:
        path: The folder, which is replaced if it is there.
        arrays: By role, then by name.
        members: Further files by name, as bytes or as pieces of them.

    Raises:
        InputError: It cannot be written, or an array cannot be stored.
    """
    with written_whole(path) as folder:
        folder.mkdir()
        for role, named in arrays.items():
            save_arrays(folder / f"{role}{_SUFFIX}", named)
        for name, data in members.items():
            with (folder / name).open("wb") as file:
                file.writelines((data,) if isinstance(data, bytes) else data)
        files = {each.name: _fingerprint(each) for each in sorted(folder.iterdir())}
        manifest = {"format": FORMAT, "version": VERSION, "files": files}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def read_folder(
    path: Path,
) -> tuple[dict[str, dict[str, Array | MXArray]], dict[str, bytes]]:
    """Return the arrays of a folder by role and name, and its further members by name.

    Args:
        path: The folder.

    Raises:
        InputError: It is no bundle, is of another version, or a file is missing or changed.
    """
    files = _checked_manifest(path)
    for name, record in files.items():
        _check_file(path / name, record)
    archives = {role: path / f"{role}{_SUFFIX}" for role in ROLES if f"{role}{_SUFFIX}" in files}
    arrays = {role: load_arrays(archive) for role, archive in archives.items()}
    return arrays, {name: (path / name).read_bytes() for name in MEMBERS if name in files}


def is_bundle_folder(path: Path) -> bool:
    """Return whether `path` is a folder that claims to be a bundle."""
    try:
        return (path / MANIFEST).is_file()
    except ValueError:  # a null character in the name
        return False


def refuse_folder(path: Path) -> None:
    """Refuse a place where something else than a folder of a bundle stands.

    Raises:
        InputError: `path` is neither free, nor an empty folder, nor a bundle.
    """
    try:
        stands = path.exists() or path.is_symlink()
        is_folder = path.is_dir() and not path.is_symlink()
        names = {entry.name for entry in path.iterdir()} if is_folder else set[str]()
    except OSError as error:
        message = f"{path} must be a place that can be written: {error.strerror or error}"
        raise InputError(message) from error
    if is_folder:
        foreign = names - {MANIFEST, *_FILES} if MANIFEST in names else names
        if foreign:
            message = (
                f"{path} must be empty or hold nothing but a bundle, not files such as "
                f"{min(foreign)!r}"
            )
            raise InputError(message)
        if names and _read_manifest(path).get("format") != FORMAT:
            message = (
                f"{path} must be empty or hold nothing but a bundle, and its {MANIFEST} is of none"
            )
            raise InputError(message)
    elif stands:
        message = f"{path} must be a folder or a place where nothing stands, not a file"
        raise InputError(message)


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _checked_manifest(path: Path) -> dict[str, Any]:
    if not is_bundle_folder(path):
        message = f"{path} must be a bundle, a folder with a file {MANIFEST}"
        raise InputError(message)
    manifest = _read_manifest(path)
    if manifest.get("format") != FORMAT:
        message = (
            f"{path / MANIFEST} must have the format {FORMAT!r}, not {manifest.get('format')!r}"
        )
        raise InputError(message)
    version = manifest.get("version")
    if version != VERSION:
        message = f"{path} must be a bundle of version {VERSION}, not {version!r}"
        raise InputError(message)
    listed = manifest.get("files")
    files = cast("dict[str, Any]", listed) if isinstance(listed, dict) else {}
    if not {_INPUTS, OPTIONS} <= files.keys() <= set(_FILES):
        message = f"{path / MANIFEST} must list {_INPUTS}, {OPTIONS} and no unknown files"
        raise InputError(message)
    return files


def _check_file(path: Path, record: object) -> None:
    if not path.is_file():
        message = f"{path} must be there, as {MANIFEST} lists it"
        raise InputError(message)
    found = _fingerprint(path)
    if found != record:
        message = f"{path} must be as it was written, but its size or content has changed"
        raise InputError(message)


def _read_manifest(path: Path) -> dict[str, Any]:
    place = path / MANIFEST
    try:
        value = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        message = f"{place} must be a JSON file that can be read: {error}"
        raise InputError(message) from error
    if not isinstance(value, dict):
        message = f"{place} must hold a JSON object"
        raise InputError(message)
    return cast("dict[str, Any]", value)
