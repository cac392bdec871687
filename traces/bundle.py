"""A run on disk: what went in, what came out, and all that is needed to run it again.

A bundle is a folder:

| member | holds |
|---|---|
| `inputs.npz`, `outputs.npz`, `golden.npz` | arrays by parameter name |
| `executable.bin` | the executable, as it was run |
| `machine.toml` | the machine, as it was run |
| `program.py` | the kernel as it was written, as the language prints it; golden comes from it |
| `options.json` | rules, rounding, seed and versions |
| `timeline.json` | a Chrome trace, for Perfetto |
| `scales.npz` | the boxes that the scale-decode unit consumed, and how |
| `bundle.json` | the format's name and version; size and SHA-256 of every file above |

Only `inputs.npz`, `options.json` and `bundle.json` are always there. Under a name that ends in
`.hrry` it is one tensor file instead: the arrays are tensors `inputs/a`, `outputs/c`, `golden/c`, and
the other members are key-values of the same names, each compressed by zlib.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ..ir.errors import InputError
from .bundle_file import is_bundle_file, read_file, write_file
from .bundle_folder import is_bundle_folder, read_folder, refuse_folder, write_folder
from .bundle_format import EXECUTABLE, MACHINE, MANIFEST, OPTIONS, PROGRAM, SCALES, TIMELINE
from .containers import SUFFIX
from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ..ir.numerics.mxarray import MXArray
    from .bits import Array

__all__ = ["MANIFEST", "Bundle", "is_bundle", "load_bundle", "refuse_foreign", "save_bundle"]


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A run: its inputs, its results, and what ran it.

    Attributes:
        inputs: Launch inputs by parameter name.
        outputs: What the machine left, by output name, if it ran.
        golden: What the outputs should be, by output name, if it is known.
        executable: The bytes of the executable file, if there was one.
        machine: The text of the machine file (TOML), if there was a machine.
        program: The text of the kernel, from which golden can be computed, if there was one.
        options: Plain values: rules, rounding, seed, versions.
        timeline: A Chrome trace, if one was recorded: as a timeline, whose text is made as it is
            written, or as plain values, which is what is loaded.
        scales: The bytes of the recorded box streams (`.npz`), if there are any.
    """

    inputs: Mapping[str, Array | MXArray]
    outputs: Mapping[str, Array | MXArray] | None = None
    golden: Mapping[str, Array | MXArray] | None = None
    executable: bytes | None = None
    machine: str | None = None
    program: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeline: Timeline | Mapping[str, Any] | None = None
    scales: bytes | None = None


def save_bundle(path: Path, bundle: Bundle) -> None:
    """Write `bundle` to a folder, or to one file, which appears whole or not at all.

    Args:
        path: A place where nothing stands yet, an empty folder, or a bundle of the same form, which
            is replaced. A name that ends in `.hrry` asks for one file.
        bundle: The run.

    Raises:
        InputError: Something else stands at `path`, it cannot be written, or the bundle holds what
            its files cannot.
    """
    refuse_foreign(path)
    arrays = {"inputs": bundle.inputs, "outputs": bundle.outputs, "golden": bundle.golden}
    given = {role: found for role, found in arrays.items() if found is not None}
    write = write_file if path.suffix == SUFFIX else write_folder
    write(path, given, _encoded(bundle))


def load_bundle(path: Path) -> Bundle:
    """Return the bundle at `path`, be it a folder or a file.

    Raises:
        InputError: There is none, it is of a later version, or a part of it is missing or changed.
    """
    read = read_file if path.is_file() else read_folder
    arrays, members = read(path)
    machine, program = members.get(MACHINE), members.get(PROGRAM)
    timeline = members.get(TIMELINE)
    return Bundle(
        inputs=arrays.get("inputs", {}),
        outputs=arrays.get("outputs"),
        golden=arrays.get("golden"),
        executable=members.get(EXECUTABLE),
        machine=None if machine is None else _toml(path, machine),
        program=None if program is None else _text(path, PROGRAM, program),
        options=_json(path, OPTIONS, members[OPTIONS]),
        timeline=None if timeline is None else _json(path, TIMELINE, timeline),
        scales=members.get(SCALES),
    )


def is_bundle(path: Path) -> bool:
    """Return whether `path` is a folder or a file that claims to be a bundle."""
    return is_bundle_folder(path) or is_bundle_file(path)


def refuse_foreign(path: Path) -> None:
    """Refuse a place where something else than a bundle of the form that `path` asks for stands.

    Raises:
        InputError: `path` is neither free, nor such a bundle, nor, for a folder, empty.
    """
    if path.suffix != SUFFIX:
        refuse_folder(path)
        return
    try:
        stands = path.exists() or path.is_symlink()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        message = f"{path} must be a place that can be written: {reason or error}"
        raise InputError(message) from error
    if stands and not is_bundle_file(path):
        message = f"{path} must be a bundle or a place where nothing stands, not something else"
        raise InputError(message)


def _encoded(bundle: Bundle) -> dict[str, bytes | Iterable[bytes]]:
    """Return the members that are no arrays, as bytes or as pieces of them."""
    members: dict[str, bytes | Iterable[bytes]] = {}
    if bundle.executable is not None:
        members[EXECUTABLE] = bundle.executable
    if bundle.machine is not None:
        members[MACHINE] = bundle.machine.encode()
    if bundle.program is not None:
        members[PROGRAM] = bundle.program.encode()
    members[OPTIONS] = _json_bytes(OPTIONS, bundle.options, indent=2)
    if isinstance(bundle.timeline, Timeline):
        members[TIMELINE] = (piece.encode() for piece in bundle.timeline.text())
    elif bundle.timeline is not None:
        members[TIMELINE] = _json_bytes(TIMELINE, bundle.timeline, indent=None)
    if bundle.scales is not None:
        members[SCALES] = bundle.scales
    return members


def _json_bytes(name: str, value: Mapping[str, Any], *, indent: int | None) -> bytes:
    try:
        return (json.dumps(dict(value), indent=indent) + "\n").encode()
    except (TypeError, ValueError) as error:
        message = f"{name.partition('.')[0]} of a bundle must hold plain values only: {error}"
        raise InputError(message) from error


def _json(path: Path, name: str, data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        message = f"{name} of {path} must be JSON: {error}"
        raise InputError(message) from error
    if not isinstance(value, dict):
        message = f"{name} of {path} must hold a JSON object"
        raise InputError(message)
    return cast("dict[str, Any]", value)


def _toml(path: Path, data: bytes) -> str:
    text = _text(path, MACHINE, data)
    try:
        tomllib.loads(text)
    except ValueError as error:
        message = f"{MACHINE} of {path} must be TOML: {error}"
        raise InputError(message) from error
    return text


def _text(path: Path, name: str, data: bytes) -> str:
    try:
        return data.decode()
    except ValueError as error:
        message = f"{name} of {path} must be text: {error}"
        raise InputError(message) from error
