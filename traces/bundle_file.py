"""The one-file form of a bundle: a tensor file, whose key-values hold what is no array."""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import TYPE_CHECKING, Any, Final, cast

from ..ir.errors import InputError, UserError
from .bundle_format import FORMAT, MANIFEST, MEMBERS, OPTIONS, ROLES, VERSION
from .containers import arrays_of, is_container, tensors_of
from .hurray import HurrayFile, save

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ..ir.numerics.mxarray import MXArray
    from .bits import Array
    from .hurray import Tensor
    from .hurray.key_values import Value

    Arrays = Mapping[str, Array | MXArray]
    Members = Mapping[str, bytes | Iterable[bytes]]

_MOST_BYTES: Final = 1 << 30
"""How much a member may hold: compressed bytes can promise any amount."""

_FORMAT_KEY, _VERSION_KEY, _ROLES_KEY, _DIGEST_KEY = "format", "version", "roles", "sha256"


def write_file(path: Path, arrays: Mapping[str, Arrays], members: Members) -> None:
    """Write a bundle as a tensor file.

    Args:
        path: The file, which is replaced if it is there.
        arrays: By role, then by name.
        members: What is no array, by name, as bytes or as pieces of them.

    Raises:
        InputError: It cannot be written, or an array cannot be stored.
    """
    tensors: dict[str, Tensor] = {}
    for role, named in arrays.items():
        tensors |= tensors_of(named, f"{role}/")
    packed = {name: _deflated(data) for name, data in members.items()}
    about = {
        _FORMAT_KEY: FORMAT,
        _VERSION_KEY: VERSION,
        _ROLES_KEY: list(arrays),
        _DIGEST_KEY: _digest(tensors, packed),
    }
    try:
        save(path, tensors, {MANIFEST: json.dumps(about), **packed})
    except UserError as error:
        message = f"{path} must be a file that can hold the bundle: {error.message}"
        raise InputError(message, hint=error.hint) from error


def read_file(
    path: Path,
) -> tuple[dict[str, dict[str, Array | MXArray]], dict[str, bytes]]:
    """Return the arrays of a file by role and name, and its further members by name.

    The arrays are read-only views of the file.

    Args:
        path: The file.

    Raises:
        InputError: It is no bundle, is of another version, or is damaged.
    """
    try:
        with HurrayFile(path) as file:
            values = file.kv
            about = _about(path, values)
            tensors = {name: file[name] for name in file.names}
        packed = {name: value for name, value in values.items() if name != MANIFEST}
        roles = _checked_roles(path, about.get(_ROLES_KEY), tensors)
        if not {OPTIONS} <= packed.keys() <= set(MEMBERS):
            message = f"{path} must hold {OPTIONS} and no unknown members"
            raise InputError(message)
        plain = {name: value for name, value in packed.items() if isinstance(value, bytes)}
        if len(plain) != len(packed) or _digest(tensors, plain) != about.get(_DIGEST_KEY):
            message = f"{path} must be as it was written, but its content has changed"
            raise InputError(message)
        arrays = {role: arrays_of(tensors, f"{role}/") for role in roles}
    except InputError:
        raise
    except UserError as error:
        message = f"{path} must be a bundle that can be read: {error.message}"
        raise InputError(message, hint=error.hint) from error
    return arrays, {name: _inflated(path, name, data) for name, data in plain.items()}


def is_bundle_file(path: Path) -> bool:
    """Return whether `path` is a tensor file that claims to be a bundle."""
    if not is_container(path):
        return False
    try:
        with HurrayFile(path) as file:
            return MANIFEST in file.kv
    except UserError:
        return False


def _about(path: Path, values: Mapping[str, Value]) -> dict[str, Any]:
    text = values.get(MANIFEST)
    if not isinstance(text, str):
        message = f"{path} must be a bundle, a tensor file with a text {MANIFEST} as a key-value"
        raise InputError(message)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    about = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if about.get(_FORMAT_KEY) != FORMAT:
        message = f"{MANIFEST} of {path} must be a JSON object of the format {FORMAT!r}"
        raise InputError(message)
    version = about.get(_VERSION_KEY)
    if version != VERSION:
        message = f"{path} must be a bundle of version {VERSION}, not {version!r}"
        raise InputError(message)
    return about


def _checked_roles(path: Path, given: object, tensors: Mapping[str, Tensor]) -> list[str]:
    """Return the roles that there are arrays of, be it none in number."""
    listed = cast("list[Any]", given) if isinstance(given, list) else []
    roles = [role for role in ROLES if role in listed]
    found = {name.partition("/")[0] for name in tensors}
    if ROLES[0] not in roles or len(roles) != len(listed) or not found <= set(roles):
        message = f"The tensors of {path} must be of the roles {', '.join(ROLES)}, inputs always"
        raise InputError(message)
    return roles


def _digest(tensors: Mapping[str, Tensor], members: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of all that a bundle holds, names included."""
    digest = hashlib.sha256()

    def add(data: bytes | memoryview) -> None:
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)

    for name, tensor in tensors.items():
        add(name.encode())
        add(tensor.descriptor.encode())
        for index in range(tensor.buffer_count):
            add(tensor.buffer(index))
    for name in sorted(members):
        add(name.encode())
        add(members[name])
    return digest.hexdigest()


def _deflated(data: bytes | Iterable[bytes]) -> bytes:
    engine = zlib.compressobj(9)
    pieces = (data,) if isinstance(data, bytes) else data
    return b"".join([*map(engine.compress, pieces), engine.flush()])


def _inflated(path: Path, name: str, data: bytes) -> bytes:
    engine = zlib.decompressobj()
    try:
        found = engine.decompress(data, _MOST_BYTES)
    except zlib.error as error:
        message = f"{name} of {path} must be data that zlib has compressed: {error}"
        raise InputError(message) from error
    if not engine.eof or engine.unused_data:
        message = f"{name} of {path} must be whole and at most {_MOST_BYTES} bytes"
        raise InputError(message)
    return found
