"""What the names of the language are, as Python objects.

A kernel is never run, so most of these objects only carry a name that the parser recognises,
whatever alias it is reached by. Used outside of a kernel they say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from ..errors import InvalidOperationError, UndefinedVariableError, UnsupportedFeatureError
from ..suggest import near
from .names import UNSUPPORTED
from .source import caller_span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..errors import Span


class UnknownNameError(UndefinedVariableError, AttributeError):
    """A name that the language does not have; also an AttributeError, so that hasattr works."""


#: The words that are no ops -> where they belong.
INTRINSICS: Final = {
    "range": "the head of a for, as in for i in pl.range(4):",
    "parallel": "the head of a for, as in for i in pl.parallel(4):",
    "unroll": "the head of a for, as in for i in pl.unroll(4):",
    "spmd": "the head of a for or a with, as in for i in pl.spmd(4):",
    "at": "the head of a with, as in with pl.at(level=pl.Level.CORE_GROUP):",
    "submit": "an assignment of its own, as in out, tid = pl.submit(self.kernel, a)",
    "spmd_submit": "an assignment of its own, as in out, tid = pl.spmd_submit(self.kernel, a, core_num=4)",
    "dump_tag": "a line of its own in a @pl.function",
    "static_print": "a line of its own in a @pl.function",
    "pipeline": "the head of a for, as in for i in pl.pipeline(4, stage=2):",
    "while_": "the head of a for, as in for (x,) in pl.while_(init_values=(x0,)):",
    "cond": "the first line of a pl.while_ loop",
    "yield_": "the last line of an if or a loop, as in y = pl.yield_(x)",
    "min": "an expression of a @pl.function",
    "max": "an expression of a @pl.function",
    "cast": "an expression of a @pl.function",
    "func_attr": "the first line of a @pl.function",
    "static_assert": "a line of its own in a @pl.function",
}


@dataclass(frozen=True)
class Intrinsic:
    """A word of the language that is no op: a loop, a yield, a scalar function."""

    name: str

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise InvalidOperationError: kernels are parsed, never run."""
        where = INTRINSICS[self.name]
        message = f"pl.{self.name} must stand in {where}; it is parsed there and never run"
        raise InvalidOperationError(message, caller_span())


@dataclass(frozen=True)
class OpName:
    """An op, by the name it is written with: `load`, or in full `tile.load`."""

    name: str

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise InvalidOperationError: kernels are parsed, never run."""
        message = f"pl.{self.name} must stand in the body of a @pl.function, which is never run"
        hint = "from Python, build the call with ir.create_op_call(name, args, kwargs, span)"
        raise InvalidOperationError(message, caller_span(), hint=hint)


class OpNamespace:
    """The ops of a namespace, such as `pl.tile`; its attributes are its :class:`OpName` s."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> OpName:
        from ..ops import ROWS

        if f"{self.name}.{name}" in ROWS:
            return OpName(f"{self.name}.{name}")
        if name.startswith("__"):
            raise AttributeError(name)
        owner = f"pl.{self.name}"
        raise unknown_name(owner, name, self.known(), caller_span())

    def __dir__(self) -> list[str]:
        return self.known()

    def known(self) -> list[str]:
        """Return the short names of the ops that kernels may write."""
        from ..ops import ROWS

        prefix = f"{self.name}."
        return [n.removeprefix(prefix) for n, r in ROWS.items() if r.public and prefix in n]


def unknown_name(owner: str, name: str, known: Iterable[str], span: Span) -> UnknownNameError:
    """Return the error for an attribute that `owner` does not have."""
    return UnknownNameError(f"{owner} has no name {name!r}", span, hint=near(name, known))


@dataclass(frozen=True)
class Unsupported:
    """A word of PyPTO that this language leaves out; every use is an error that says so."""

    name: str

    @property
    def message(self) -> str:
        """What the error says."""
        return f"pl.{self.name} is not part of this language"

    @property
    def hint(self) -> str:
        """What does the job instead."""
        return f"what works: {UNSUPPORTED[self.name]}"

    def refuse(self) -> NoReturn:
        """Raise the error at the place that uses the word."""
        raise UnsupportedFeatureError(self.message, caller_span(2), hint=self.hint)

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise UnsupportedFeatureError."""
        self.refuse()

    def __getitem__(self, _: object) -> NoReturn:
        self.refuse()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        self.refuse()
