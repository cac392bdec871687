"""`@pl.program` and `@pl.function`: the text is parsed where it is decorated, and never run."""

from __future__ import annotations

from types import FunctionType as PythonFunction
from typing import TYPE_CHECKING, Any, Final, overload

from ..core import DERIVED_PLACE, FunctionType, Level, Role
from ..errors import (
    IRValueError,
    ParserSyntaxError,
    ParserTypeError,
    Span,
    UnsupportedFeatureError,
)
from .capture import describe
from .context import Options
from .names import is_attribute_value
from .source import caller_span, calling_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from ..core import Program

_OPTIONS: Final = "__scalebox_options__"


@overload
def program(cls: type) -> Program: ...
@overload
def program(*, strict_ssa: bool = ...) -> Callable[[type], Program]: ...
def program(
    cls: type | None = None, *, strict_ssa: bool = False
) -> Program | Callable[[type], Program]:
    """Turn a class into the program that its text says.

    Args:
        cls: A class with at least one method that has `@pl.function`.
        strict_ssa: Whether a name may be assigned only once.

    Raises:
        ParserError: When the text is none of the language.
    """
    if cls is not None:
        return _parse_class(cls, calling_frame(), strict_ssa=strict_ssa)

    def decorate(decorated: type) -> Program:
        return _parse_class(decorated, calling_frame(), strict_ssa=strict_ssa)

    return decorate


@overload
def function(func: Callable[..., Any]) -> Any: ...
@overload
def function(
    *,
    type: FunctionType = ...,
    level: Level | None = ...,
    role: Role | None = ...,
    attrs: Mapping[str, object] | None = ...,
    auto_scope: bool = ...,
    strict_ssa: bool = ...,
    external_source: str | None = ...,
) -> Callable[[Callable[..., Any]], Any]: ...
def function(
    func: Callable[..., Any] | None = None,
    *,
    type: FunctionType = FunctionType.Opaque,  # noqa: A002 - the name in PyPTO
    level: Level | None = None,
    role: Role | None = None,
    attrs: Mapping[str, object] | None = None,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external_source: str | None = None,
) -> Any:
    """Mark a method as a function of its program, or turn a `def` into a function.

    Args:
        func: What is decorated.
        type: On which plane it runs: InCore for a kernel, Orchestration for what calls kernels.
        level: The machine level; it must be the one that `type` implies.
        role: The role at that level; it must be the one that `type` implies.
        attrs: Attributes; `pl.func_attr({...})` as the first line says the same.
        auto_scope: Accepted for kernels written elsewhere; there are no scopes to insert.
        strict_ssa: Whether a name may be assigned only once.
        external_source: Not supported.

    Raises:
        ParserError: When the text of a `def` outside of a class is none of the language.
        ParserTypeError: When `type`, `level` or `role` is something else.
        IRValueError: When level or role is not the one that `type` implies.
        UnsupportedFeatureError: For an external source.
    """
    del auto_scope
    where = caller_span()
    _check_kinds(where, type=(type, FunctionType), level=(level, Level), role=(role, Role))
    if external_source is not None:
        message = "A function must be written in the language, not taken from external_source"
        raise UnsupportedFeatureError(message, where)
    if attrs is not None and not (isinstance(attrs, dict) and is_attribute_value(attrs)):
        message = "attrs must be a dict from strings to numbers, strings, enumerations or dtypes"
        raise ParserTypeError(message, where)
    check_place(type, level, role, where)
    options = Options(type, level, role, dict(attrs or {}), strict_ssa)
    if func is not None:
        return _mark_or_parse(func, options, calling_frame())

    def decorate(decorated: Callable[..., Any]) -> Any:
        return _mark_or_parse(decorated, options, calling_frame())

    return decorate


def _check_kinds(where: Span, **given: tuple[object, Any]) -> None:
    for name, (value, kind) in given.items():
        if value is not None and not isinstance(value, kind):
            message = f"{name} must be a {kind.__name__}, not {value!r}"
            hint = f"valid: {', '.join(f'pl.{kind.__name__}.{m.name}' for m in kind)}"
            raise ParserTypeError(message, where, hint=hint)


def check_place(kind: FunctionType, level: Level | None, role: Role | None, where: Span) -> None:
    """Check a level and a role that were given.

    Raises:
        IRValueError: When one of them is not what `kind` implies.
    """
    derived = DERIVED_PLACE.get(kind)
    for given, implied in zip((level, role), derived or (level, role), strict=True):
        if given is not None and given is not implied:
            assert implied is not None
            word = implied.__class__.__name__.lower()
            message = (
                f"The {word} of an {kind.name} function must be {implied.name}, not {given.name}"
            )
            raise IRValueError(message, where, hint=f"leave {word}= out")


def _visible_names(frame: FrameType) -> dict[str, object]:
    return {**frame.f_globals, **frame.f_locals}


def _mark_or_parse(func: Callable[..., Any], options: Options, frame: FrameType) -> Any:
    if not isinstance(func, PythonFunction):
        message = f"@pl.function must decorate a def, not {describe(func)}"
        raise ParserTypeError(message, caller_span(2))
    if "__module__" in frame.f_locals and "__qualname__" in frame.f_locals:
        setattr(func, _OPTIONS, options)
        return func
    from .functions import parse_function

    return parse_function(func, options, _visible_names(frame))


def _parse_class(cls: object, frame: FrameType, *, strict_ssa: bool) -> Program:
    where = caller_span(2)
    if not isinstance(cls, type):
        message = f"@pl.program must decorate a class, not {describe(cls)}"
        raise ParserTypeError(message, where)
    methods = {
        name: (method, getattr(method, _OPTIONS))
        for name, method in vars(cls).items()
        if isinstance(method, PythonFunction) and hasattr(method, _OPTIONS)
    }
    if not methods:
        message = f"The program {cls.__name__!r} must have at least one method with @pl.function"
        raise ParserSyntaxError(message, where)
    from .functions import parse_program

    return parse_program(cls.__name__, methods, _visible_names(frame), strict_ssa=strict_ssa)
