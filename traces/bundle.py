"""A run on disk: what went in, what came out, and all that is needed to run it again.

A bundle is a folder:

| file | holds |
|---|---|
| `inputs.npz`, `outputs.npz`, `golden.npz` | arrays by parameter name |
| `executable.bin` | the executable, as it was run |
| `machine.toml` | the machine, as it was run |
| `options.json` | rules, rounding, seed and versions |
| `timeline.json` | a Chrome trace, for Perfetto |
| `bundle.json` | the format's name and version; size and SHA-256 of every file above |

Only `inputs.npz`, `options.json` and `bundle.json` are always there.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ..ir.errors import InputError
from .arrays import load_arrays, save_arrays
from .whole import written_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..ir.numerics.mxarray import MXArray
    from .bits import Array

FORMAT = "scalebox-bundle"
VERSION = 1

MANIFEST = "bundle.json"
_INPUTS = "inputs.npz"
_OUTPUTS = "outputs.npz"
_GOLDEN = "golden.npz"
_EXECUTABLE = "executable.bin"
_MACHINE = "machine.toml"
_OPTIONS = "options.json"
_TIMELINE = "timeline.json"
_FILES = (_INPUTS, _OUTPUTS, _GOLDEN, _EXECUTABLE, _MACHINE, _OPTIONS, _TIMELINE)


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A run: its inputs, its results, and what ran it.

    Attributes:
        inputs: Launch inputs by parameter name.
        outputs: What the machine left, by output name, if it ran.
        golden: What the interpreter left, by output name, if it ran.
        executable: The bytes of the executable file, if there was one.
        machine: The text of the machine file (TOML), if there was a machine.
        options: Plain values: rules, rounding, seed, versions.
        timeline: A Chrome trace, if one was recorded.
    """

    inputs: Mapping[str, Array | MXArray]
    outputs: Mapping[str, Array | MXArray] | None = None
    golden: Mapping[str, Array | MXArray] | None = None
    executable: bytes | None = None
    machine: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeline: Mapping[str, Any] | None = None


def save_bundle(directory: Path, bundle: Bundle) -> None:
    """Write `bundle` to a folder that appears whole or not at all.

    Args:
        directory: A place where nothing stands yet, an empty folder, or a bundle, which is replaced.
        bundle: The run.

    Raises:
        InputError: Something else stands at `directory`, it cannot be written, or the bundle holds
            what its files cannot.
    """
    refuse_foreign(directory)
    with written_whole(directory) as folder:
        folder.mkdir()
        for name, arrays in (
            (_INPUTS, bundle.inputs),
            (_OUTPUTS, bundle.outputs),
            (_GOLDEN, bundle.golden),
        ):
            if arrays is not None:
                save_arrays(folder / name, arrays)
        if bundle.executable is not None:
            (folder / _EXECUTABLE).write_bytes(bundle.executable)
        if bundle.machine is not None:
            (folder / _MACHINE).write_text(bundle.machine, encoding="utf-8")
        _write_json(folder / _OPTIONS, bundle.options)
        if bundle.timeline is not None:
            _write_json(folder / _TIMELINE, bundle.timeline)
        _write_json(folder / MANIFEST, _manifest(folder))


def load_bundle(directory: Path) -> Bundle:
    """Return the bundle at `directory`.

    Raises:
        InputError: There is none, it is of a later version, or a file of it is missing or changed.
    """
    files = _checked_manifest(directory)
    for name, record in files.items():
        _check_file(directory / name, record)

    def arrays(name: str) -> dict[str, Array | MXArray] | None:
        return load_arrays(directory / name) if name in files else None

    return Bundle(
        inputs=load_arrays(directory / _INPUTS),
        outputs=arrays(_OUTPUTS),
        golden=arrays(_GOLDEN),
        executable=(directory / _EXECUTABLE).read_bytes() if _EXECUTABLE in files else None,
        machine=_read_toml(directory / _MACHINE) if _MACHINE in files else None,
        options=_read_json(directory / _OPTIONS),
        timeline=_read_json(directory / _TIMELINE) if _TIMELINE in files else None,
    )


def is_bundle(path: Path) -> bool:
    """Return whether `path` is a folder that claims to be a bundle."""
    return (path / MANIFEST).is_file()


def refuse_foreign(directory: Path) -> None:
    """Refuse a place where something else than a bundle stands.

    Raises:
        InputError: `directory` is neither free, nor an empty folder, nor a bundle.
    """
    try:
        stands = directory.exists() or directory.is_symlink()
        is_folder = directory.is_dir() and not directory.is_symlink()
        names = {entry.name for entry in directory.iterdir()} if is_folder else set[str]()
    except OSError as error:
        message = f"{directory} must be a place that can be written: {error.strerror or error}"
        raise InputError(message) from error
    if is_folder:
        ours = {MANIFEST, *_FILES} if MANIFEST in names else set[str]()
        if not names <= ours:
            message = (
                f"{directory} must be empty or hold nothing but a bundle, not files such as "
                f"{min(names - ours)!r}"
            )
            raise InputError(message)
    elif stands:
        message = f"{directory} must be a folder or a place where nothing stands, not a file"
        raise InputError(message)


def _manifest(folder: Path) -> dict[str, Any]:
    files = {path.name: _fingerprint(path) for path in sorted(folder.iterdir())}
    return {"format": FORMAT, "version": VERSION, "files": files}


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _checked_manifest(directory: Path) -> dict[str, Any]:
    if not is_bundle(directory):
        message = f"{directory} must be a bundle, a folder with a file {MANIFEST}"
        raise InputError(message)
    manifest = _read_json(directory / MANIFEST)
    if manifest.get("format") != FORMAT:
        message = f"{directory / MANIFEST} must have the format {FORMAT!r}, not {manifest.get('format')!r}"
        raise InputError(message)
    version = manifest.get("version")
    if version != VERSION:
        message = f"{directory} must be a bundle of version {VERSION}, not {version!r}"
        raise InputError(message)
    listed = manifest.get("files")
    files = cast("dict[str, Any]", listed) if isinstance(listed, dict) else {}
    if not {_INPUTS, _OPTIONS} <= files.keys() <= set(_FILES):
        message = f"{directory / MANIFEST} must list {_INPUTS}, {_OPTIONS} and no unknown files"
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


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    try:
        text = json.dumps(dict(value), indent=None if path.name == _TIMELINE else 2)
    except (TypeError, ValueError) as error:
        message = f"{path.stem} of a bundle must hold plain values only: {error}"
        raise InputError(message) from error
    path.write_text(text + "\n", encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path} must be a JSON file that can be read: {error}"
        raise InputError(message) from error
    if not isinstance(value, dict):
        message = f"{path} must hold a JSON object"
        raise InputError(message)
    return cast("dict[str, Any]", value)


def _read_toml(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
        tomllib.loads(text)
    except ValueError as error:  # the root of what tomllib and UTF-8 raise
        message = f"{path} must be a TOML file: {error}"
        raise InputError(message) from error
    return text
