"""`@pl.jit` and its kin: functions that call each other by name, read when a program is asked for.

An entry under `@pl.jit` becomes an Orchestration function; what it calls by name joins its program.
`@pl.jit.inline`, which is `@pl.inline` too, makes a template: its statements take the place of each
call of it.
"""

from __future__ import annotations

import ast
from types import FunctionType as PythonFunction
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ..core import Function, FunctionType, Level, Program
from ..errors import InvalidOperationError, ParserTypeError, UnsupportedFeatureError
from .capture import describe
from .context import Options
from .decorators import check_place
from .source import caller_span, calling_frame, find_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType


#: By function and name, what a name in its text stood for when it was read.
_Captured = dict[tuple[int, str], object]


class JITFunction:
    """A function whose text is read when its program is asked for.

    Attributes:
        name: Its name.
        kind: On which plane it runs.
    """

    def __init__(self, function: PythonFunction, kind: FunctionType, frame: FrameType) -> None:
        self.name = function.__name__
        self.kind = kind
        self.python = function
        self._locals = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
        self._made: Function | None = None
        self._seen: _Captured = {}
        self._names: tuple[str, ...] | None = None
        self._is_open = False

    @property
    def is_entry(self) -> bool:
        """Whether it was decorated with `@pl.jit` itself."""
        return self.kind is FunctionType.Orchestration

    @property
    def namespace(self) -> Mapping[str, object]:
        """The names that its text can see: the globals as they are now, and those around it."""
        return {**self.python.__globals__, **self._locals}

    @property
    def function(self) -> Function:
        """Its IR, read anew when a name that its text uses has got another value.

        Raises:
            ParserError: When its text is none of the language, or it calls itself.
        """
        from .functions import parse_function

        if self._is_open:
            source, node = find_function(self.python)
            message = f"{self.name!r} must not call itself, neither here nor through others"
            hint = "a loop repeats statements"
            where = source.head_span(node)
            raise source.error(UnsupportedFeatureError, message, where, hint=hint)
        seen = self._captured({})
        if self._made is None or not _same(seen, self._seen):
            options = Options(self.kind, jit=True)
            self._is_open = True
            try:
                self._made = parse_function(self.python, options, self.namespace)
            finally:
                self._is_open = False
            self._seen = seen
        return self._made

    def _captured(self, found: _Captured) -> _Captured:
        """Add the values of the names in its text, and in the functions of jit among them."""
        if self._names is None:
            _, node = find_function(self.python)
            names = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
            self._names = tuple(dict.fromkeys(names))
        namespace = self.namespace
        for name in self._names:
            place = (id(self), name)
            if name in namespace and place not in found:
                found[place] = value = namespace[name]
                if isinstance(value, JITFunction):
                    value._captured(found)  # noqa: SLF001 - another one of its own class
        return found

    def specialize(self) -> Program:
        """Return the program of this function and all that it calls, before any pass.

        Raises:
            ParserError: When a text is none of the language, or does not say all shapes.
        """
        from .functions import companions

        if self.kind is FunctionType.Inline:
            message = f"{self.name!r} must be called by an entry: it is a template, no function"
            raise InvalidOperationError(message, caller_span(), hint="@pl.jit makes an entry")
        made = self.function
        return Program(companions(made), made.name, made.span)

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise InvalidOperationError: kernels are parsed, never run as Python."""
        message = f"{self.name!r} must be run by scalebox.run or scalebox.interpret, not be called"
        hint = f'scalebox.run({self.name}, {{"a": …}}) takes the arguments by name'
        raise InvalidOperationError(message, caller_span(), hint=hint)

    def __repr__(self) -> str:
        return f"<{self.kind.name} function {self.name!r} of the language>"


class JIT:
    """The decorator `@pl.jit`, and `@pl.jit.incore` and so on as its attributes."""

    def __call__(self, func: Callable[..., Any] | None = None, *, auto_scope: bool = True) -> Any:
        """Make an entry: an Orchestration function that launches what it calls.

        Args:
            func: A `def` whose annotations say all shapes.
            auto_scope: Accepted for kernels written elsewhere; there are no scopes to insert.
        """
        del auto_scope
        return _decorated(func, FunctionType.Orchestration)

    def incore(self, func: Callable[..., Any] | None = None, *, level: Level | None = None) -> Any:
        """Make a kernel that one core runs; `level` must be the one that this implies."""
        check_place(FunctionType.InCore, level, None, caller_span())
        return _decorated(func, FunctionType.InCore)

    def opaque(self, func: Callable[..., Any] | None = None) -> Any:
        """Make a function whose plane its statements decide."""
        return _decorated(func, FunctionType.Opaque)

    def inline(self, func: Callable[..., Any] | None = None) -> Any:
        """Make a template, whose statements take the place of each call."""
        return _decorated(func, FunctionType.Inline)

    def host(self, func: Callable[..., Any] | None = None, **_: object) -> NoReturn:
        """Raise UnsupportedFeatureError: a program runs on one device."""
        del func
        message = "pl.jit.host is not part of this language"
        hint = "what works: @pl.jit, whose program runs on one device"
        raise UnsupportedFeatureError(message, caller_span(), hint=hint)


def inline(func: Callable[..., Any] | None = None) -> Any:
    """Make a template, whose statements take the place of each call; `@pl.jit.inline` too."""
    return _decorated(func, FunctionType.Inline)


def _same(seen: _Captured, before: _Captured) -> bool:
    return seen.keys() == before.keys() and all(seen[name] is before[name] for name in seen)


def _decorated(func: Callable[..., Any] | None, kind: FunctionType) -> Any:
    frame = calling_frame(2)

    def decorate(decorated: object) -> JITFunction:
        return _made(decorated, kind, frame)

    return decorate if func is None else decorate(func)


def _made(func: object, kind: FunctionType, frame: FrameType) -> JITFunction:
    if not isinstance(func, PythonFunction):
        message = f"@pl.jit must decorate a def, not {describe(func)}"
        raise ParserTypeError(message, caller_span(3))
    return JITFunction(func, kind, frame)


jit: Final = JIT()
