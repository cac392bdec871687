"""Programs from text and from files."""

from __future__ import annotations
import __future__

import ast
import io
import sys
import tokenize
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import Function, FunctionType, Program
from ..dynamic_dims import bind_dims, dynamic_dims
from ..errors import InputError, ParserSyntaxError, UserError
from ..given import describe_given
from .capture import Capture
from .jitted import JITFunction
from .params import param_overrides
from .source import (
    nested_too_deeply,
    open_source,
    raised_in_package,
    register_text,
    syntax_error,
    traceback_span,
)
from .variables import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

    from ..errors import Span
    from .params import Parameters
    from .source import Source

_MACHINE = "MACHINE"


@dataclass(frozen=True)
class KernelFile:
    """What a kernel file holds.

    Attributes:
        path: The file.
        program: Its program; a lone function is the only one of a program of its name.
        machine: What the file's `MACHINE = "…"` says, or None.
        params: The values of its `pl.param` calls by name, in the order of the file.
        dims: The extents that dynamic dimensions of its program were given, by name.
    """

    path: Path
    program: Program
    machine: str | None
    params: Mapping[str, int]
    dims: Mapping[str, int] = field(default_factory=dict[str, int])


def parse(text: str) -> Program | Function:
    """Return the one program, or the one function, that `text` says.

    The language is known to the text as `pl`, with or without an import.

    Raises:
        ParserError: When the text is none of the language.
        InputError: When it holds no program or function, or several.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"What is parsed must be a string of source text, not {describe_given(text)}"
        raise InputError(message)
    name = register_text(text)
    return _only_item(_execute(text, name), "The text")


def loads(path: str | Path, *, params: Mapping[str, int | str] | None = None) -> Program | Function:
    """Return the one program, or the one function, of a file.

    Args:
        path: A Python file with one program, or one function, at module level.
        params: What replaces its `pl.param` values, and extents of its dynamic dimensions, as
            `--param` does on the command line: `{"M": 1024}`.

    Raises:
        ParserError: When the text is none of the language.
        InputError: When the file cannot be read, holds no program or several, or has no parameter
            of a given name.
    """
    return _item_of_file(path, params)[0]


def load_file(path: str | Path, *, params: Mapping[str, int | str] | None = None) -> KernelFile:
    """Return what a kernel file holds.

    Args:
        path: A Python file with one program, or one function, at module level.
        params: What replaces its `pl.param` values, and extents of its dynamic dimensions.

    Raises:
        ParserError: When the text is none of the language.
        InputError: When the file cannot be read, holds no program or several, or has no parameter
            of a given name.
    """
    item, names, record = _item_of_file(path, params)
    program = _as_program(item)
    machine = names.get(_MACHINE)
    if machine is not None and not isinstance(machine, str):
        message = f"{_MACHINE} in {path} must be a string, not {machine!r}"
        raise InputError(message)
    return KernelFile(_file(path), program, machine, dict(record.values), dict(record.dims))


def _item_of_file(
    path: str | Path, params: Mapping[str, int | str] | None
) -> tuple[Program | Function, Mapping[str, object], Parameters]:
    """Return the kernel of a file, what else the file names, and the sizes that it asked for."""
    file = _file(path)
    with param_overrides(params or {}) as record:
        names = _execute(_read(file), str(path))
        item = _only_item(names, f"The file {path}")
        if record.overrides:
            program = _as_program(item)
            dims = record.sizes(dim.name_hint for dim in dynamic_dims(program))
            if dims:
                item = bind_dims(program, dims)
    return item, names, record


def _as_program(item: Program | Function) -> Program:
    return item if isinstance(item, Program) else Program([item], item.name, item.span)


def _file(path: str | Path) -> Path:
    try:
        return Path(path)
    except TypeError as error:
        message = f"A kernel file must be named by a string or a path, not {describe_given(path)}"
        raise InputError(message) from error


def _read(path: Path) -> str:
    """Return a file's text as Python reads it: without a mark of its byte order, in its coding."""
    try:
        data = path.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return io.TextIOWrapper(io.BytesIO(data), encoding).read()
    except (OSError, ValueError, SyntaxError) as error:
        message = f"The kernel file must be readable text, but {path} is not: {error}"
        raise InputError(message) from error


def _execute(text: str, filename: str) -> dict[str, object]:
    """Run the module level of a kernel's text, which parses the kernels in it."""
    source = open_source(filename) if text.strip() else None
    lines = source.lines if source is not None else ()
    names: dict[str, object] = {
        "__name__": "scalebox_kernel",
        "__file__": filename,
        "pl": sys.modules[__name__.rpartition(".")[0]],
    }
    try:
        exec(_compile(text, filename), names)
    except UserError as error:
        if error.source_lines is None and error.span and error.span.filename == filename:
            error.source_lines = list(lines)
        raise
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # whatever the user's own code at module level raises
        if isinstance(error, SyntaxError) and error.filename == filename:
            raise syntax_error(error, filename, lines) from error
        known = isinstance(error, TypeError | ValueError)  # of a call with wrong arguments
        if raised_in_package(error.__traceback__) and not known:
            raise
        where = traceback_span(error.__traceback__, filename)
        assert source is not None
        _explain(source, where, names, error)
        told = traceback.format_exception_only(error)[-1].strip()
        message = f"The module level of the kernel failed: {told}"
        raise ParserSyntaxError(message, where, source_lines=lines) from error
    return names


def _explain(
    source: Source, where: Span | None, names: Mapping[str, object], error: BaseException
) -> None:
    """Raise an error that lists what would be valid, if `error` is about an unknown name."""
    if not isinstance(error, NameError | AttributeError):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute) and source.span(node) == where:
            Capture(source, names, Scope()).fold(node)


def _compile(text: str, filename: str) -> CodeType:
    """Compile with annotations left alone: they may name variables of the kernel."""
    flags = __future__.annotations.compiler_flag
    try:
        return compile(text, filename, "exec", flags=flags, dont_inherit=True)
    except (RecursionError, MemoryError) as error:
        raise nested_too_deeply(filename) from error


def _only_item(names: Mapping[str, object], what: str) -> Program | Function:
    item = _only_kernel(names, what)
    return item.specialize() if isinstance(item, JITFunction) else item


def _only_kernel(names: Mapping[str, object], what: str) -> Program | Function | JITFunction:
    """Return the one program or entry among names, else the one function."""
    values = {id(v): (n, v) for n, v in names.items()}.values()
    made = [(n, v) for n, v in values if isinstance(v, Program | Function | JITFunction)]
    entries = [(n, v) for n, v in made if isinstance(v, Program) or _is_entry(v)]
    kernels = [(n, v) for n, v in made if not _is_template(v)]
    for found, word in ((entries, "program"), (kernels, "function")):
        if len(found) > 1:
            listed = ", ".join(name for name, _ in found)
            message = f"{what} must hold one {word}, not {len(found)}: {listed}"
            raise InputError(message)
        for _, item in found:
            return item
    message = f"{what} must hold a program or a function, but holds none"
    hint = "decorate a class with @pl.program and its methods with @pl.function"
    raise InputError(message, hint=hint)


def _is_entry(item: object) -> bool:
    return isinstance(item, JITFunction) and item.is_entry


def _is_template(item: object) -> bool:
    return isinstance(item, JITFunction) and item.kind is FunctionType.Inline
