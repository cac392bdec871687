"""The show command: what a bundle or a file of arrays holds."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...ir.errors import UserError
from ...ir.numerics.mxarray import MXArray
from ...traces.bundle import Bundle, is_bundle, load_bundle
from ...traces.compare import compare
from ...traces.containers import is_container, load_listed
from ...traces.hurray import Tensor
from .result_files import read_arrays

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_MEMBERS = ("executable", "machine", "program", "timeline")


@dataclass(frozen=True)
class ArrayRow:
    """An array in the table.

    Attributes:
        role: What it is in a run; empty outside of one.
        name: Its name.
        dtype: Name of the type of its elements.
        shape: Its logical shape; None for an extent that is dynamic.
        size: In bytes, scales included.
        values: What its numbers are: from the least to the greatest, and how many are NaN; the layout
            of a tensor that is no array.
    """

    role: str
    name: str
    dtype: str
    shape: tuple[int | None, ...]
    size: int
    values: str

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        values = {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "bytes": self.size,
            "values": self.values,
        }
        return {"role": self.role, **values} if self.role else values


@dataclass(frozen=True)
class Shown:
    """What stands at a place.

    Attributes:
        title: The place.
        bundle: The run, if it is one.
        rows: Its arrays.
    """

    title: str
    bundle: Bundle | None
    rows: tuple[ArrayRow, ...]

    def as_json(self) -> dict[str, Any]:
        """Return what stands there as plain values."""
        arrays = [row.as_json() for row in self.rows]
        if self.bundle is None:
            return {"ok": True, "arrays": arrays}
        has = {name: getattr(self.bundle, name) is not None for name in _MEMBERS}
        equal = _equals_golden(self.bundle)
        options = dict(self.bundle.options)
        return {"ok": True, "options": options, "arrays": arrays, "has": has, "equal": equal}

    def lines(self) -> list[str]:
        """Return what stands there as text, which no name in a file can colour or move."""
        table = ["", *_table(self.rows)] if self.rows else []
        if self.bundle is None:
            count = len(self.rows)
            lines = [f"{self.title}: {count} {'array' if count == 1 else 'arrays'}", *table]
        else:
            lines = [*self._run(self.bundle), *table, "", *_rest(self.bundle)]
        return [_printable(line) for line in lines]

    def _run(self, bundle: Bundle) -> Iterator[str]:
        options = bundle.options
        kernel = options.get("kernel")
        yield f"{self.title}: a run" + ("" if kernel is None else f" of {kernel}")
        for key, value in options.items():
            if key in ("kernel", "versions") or value is None or value == {}:
                continue
            yield from _wrapped(key, _plain(value))


def show(path: Path) -> Shown:
    """Return what a bundle, or a file of arrays, holds. Nothing of it is run.

    Raises:
        InputError: There is nothing at `path`, or nothing of these.
    """
    if is_bundle(path):
        bundle = load_bundle(path)
        roles = {"input": bundle.inputs, "output": bundle.outputs, "golden": bundle.golden}
        given = {role: arrays for role, arrays in roles.items() if arrays is not None}
        rows = [_row(role, *each) for role, arrays in given.items() for each in arrays.items()]
        return Shown(str(path), bundle, tuple(rows))
    found: Any = load_listed(path) if is_container(path) else read_arrays(path, "What is shown")
    arrays: Mapping[str, Any] = {path.stem: found} if isinstance(found, np.ndarray) else found
    return Shown(str(path), None, tuple(_row("", name, each) for name, each in arrays.items()))


def _row(role: str, name: str, array: Any) -> ArrayRow:
    if isinstance(array, MXArray):
        size = array.elements.nbytes + array.scales.nbytes
        return ArrayRow(role, name, array.dtype.name, array.shape, size, f"axis {array.axis}")
    if isinstance(array, Tensor):
        size = sum(handle.byte_size for handle in array.buffer_handles)
        return ArrayRow(role, name, _type_of(array), array.shape, size, array.layout.name)
    return ArrayRow(role, name, array.dtype.name, array.shape, array.nbytes, _values(array))


def _type_of(tensor: Tensor) -> str:
    """Name the element type; a private one by its tag, as it has no name."""
    if tensor.extension_type is None:
        return tensor.dtype.name
    return f"private 0x{tensor.dtype.tag:02X}, {tensor.extension_type.bit_width} bits"


def _values(array: Any) -> str:
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):  # text, or records
        return ""
    is_nan = np.isnan(numbers)
    nans = int(np.count_nonzero(is_nan))
    told = [] if nans == numbers.size else [_span(numbers[~is_nan])]
    return ", ".join([*told, f"{nans} NaN"] if nans else told)


def _span(numbers: Any) -> str:
    least, most = float(numbers.min()), float(numbers.max())
    return f"{least:.5g}" if least == most else f"{least:.5g} to {most:.5g}"


def _table(rows: tuple[ArrayRow, ...]) -> list[str]:
    head = ("", "array", "type", "shape", "bytes", "values")
    cells = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(head))]
    lines: list[str] = []
    for line in cells:
        padded = [f"{text:<{width}}" for text, width in zip(line, widths, strict=True)]
        padded[4] = f"{line[4]:>{widths[4]}}"
        lines.append("  ".join(each for each, width in zip(padded, widths, strict=True) if width))
    return [line.rstrip() for line in lines]


def _cells(row: ArrayRow) -> tuple[str, ...]:
    shape = " x ".join("?" if each is None else str(each) for each in row.shape) or "scalar"
    return row.role, row.name, row.dtype, shape, f"{row.size:,}", row.values


def _rest(bundle: Bundle) -> Iterator[str]:
    equal = _equals_golden(bundle)
    if equal is not None:
        yield f"outputs    {'equal' if equal else 'DIFFERENT from'} golden"
    has = [name for name in _MEMBERS if getattr(bundle, name) is not None]
    yield f"has        {', '.join(has) or 'nothing to be run again'}"
    versions = bundle.options.get("versions")
    if isinstance(versions, dict):
        yield from _wrapped("made by", _plain(versions))


def _equals_golden(bundle: Bundle) -> bool | None:
    if bundle.outputs is None or bundle.golden is None:
        return None
    rule = str(bundle.options.get("rule", "exact"))
    try:
        return bool(compare(bundle.outputs, bundle.golden, rule=rule))
    except UserError:  # they are not alike at all
        return False


def _wrapped(key: str, text: str) -> list[str]:
    start = f"{key:<10} "
    return textwrap.wrap(text, 79, initial_indent=start, subsequent_indent=" " * len(start))


def _printable(text: str) -> str:
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        return ", ".join(f"{key} {each}" for key, each in pairs.items())
    return f"{value:,}" if type(value) is int else str(value)
