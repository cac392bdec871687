"""What several commands have in common: options, and how they are read and answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...ir.errors import UserError


class Command(TyperCommand):
    """A command whose options of one value may be given once: which of two holds, nobody would see."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, as typer does.

        Raises:
            typer.BadParameter: For an option that is given again.
        """
        *_, found = self.make_parser(ctx).parse_args(list(args))
        seen: set[str] = set()
        options: list[Any] = list(found)
        for option in options:
            if option.param_type_name != "option" or option.multiple or option.is_flag:
                continue
            if option.name in seen:
                message = f"{max(option.opts, key=len)} must be given once, not several times"
                raise typer.BadParameter(message, ctx=ctx)
            seen.add(option.name)
        return super().parse_args(ctx, args)


def example(*lines: str) -> str:
    """Return an epilog whose lines are not wrapped, so that they can be copied."""
    return "\n".join(["Example:\n\n\b", *(f"  {line}" for line in lines)])


OK, MISMATCH, USAGE = 0, 1, 2
"""Exit statuses: all is well; a result differs or the kernel is at fault; wrong usage or input."""

INTERRUPTED = 128 + 2
"""Exit status after Ctrl-C, as shells give it for SIGINT."""

RUNS = Path("scalebox-runs")
"""Where bundles go when nothing is said."""

Kernel = Annotated[Path, typer.Argument(metavar="KERNEL", help="A kernel file (.py).")]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="NAME=VALUE", help="Replace a pl.param, or give a pl.dynamic its extent."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Change a field of the machine."),
]
Machine = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="A machine by name, or a TOML file; else the kernel file's MACHINE, or a5.",
    ),
]
Inputs = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Inputs by parameter name: .npz, .hrry, a bundle, or an .npy file named like the "
        "parameter; may be given again.",
    ),
]
Entry = Annotated[
    str | None,
    typer.Option(
        metavar="FUNCTION",
        help="What to launch; else the only Orchestration function, or the only function.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", help="Seed of the inputs that are drawn; 0 by default."),
]
CheckChoice = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="What becomes of races, scales of other data, bytes never written and flags left over: "
        "error, warn or off; error by default.",
    ),
]
TimingOnly = Annotated[bool, typer.Option("--timing-only", help="Compute cycles and no outputs.")]
Warm = Annotated[
    bool,
    typer.Option(
        "--warm", help="Inputs lie in the L2 before the launch, as far as they fit there."
    ),
]
MaxCycles = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Cycles that the run may take; more are a fault of the kernel."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR|FILE",
        help=f"Folder for the bundle, or a file that ends in .hrry; by default below {RUNS}/.",
    ),
]
AS_JSON = "--json"
AsJson = Annotated[bool, typer.Option(AS_JSON, help="Print JSON instead of text.")]


def check_choice(option: str, given: str, choices: Iterable[str]) -> None:
    """Refuse, as wrong usage, what is none of the choices of an option."""
    known = list(choices)
    if given not in known:
        message = f"{option} must be one of {', '.join(known)}, not {given!r}"
        raise typer.BadParameter(message)


def print_json(answer: dict[str, Any]) -> None:
    """Print an answer for a program to read."""
    print(json.dumps(answer, indent=2, allow_nan=False))


def error_as_json(error: UserError) -> dict[str, Any]:
    """Return a mistake of the user's as plain values: what takes the place of an answer."""
    span = error.span
    place = None
    if span is not None:
        place = {"file": span.filename, "line": span.line, "column": span.column}
    return {
        "ok": False,
        "error": error.message,
        "place": place,
        "hint": error.hint,
        "note": error.note,
    }


class Answer(Protocol):
    """What a command found, for a program and for a reader."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        ...

    def lines(self) -> Iterable[str]:
        """Return it as text."""
        ...


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print what a command found."""
    if as_json:
        print_json(answer.as_json())
    else:
        print("\n".join(answer.lines()))


def pairs(given: Sequence[str] | None, option: str, *, several: bool = False) -> dict[str, str]:
    """Return name to value of an option that is given as `NAME=VALUE`, any number of times.

    Args:
        given: The values of the option.
        option: What it is called.
        several: Whether a value may be several ones.

    Raises:
        typer.BadParameter: For another form, and for a name that comes again.
    """
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            message = f"{option} must be NAME=VALUE, not {text!r}"
            raise typer.BadParameter(message)
        if name in found:
            message = f"{option} must name {name} once"
            if several:
                message += f", with all of its values, as in {name}=1,2,4"
            else:
                message += f", not with {found[name]} and again with {value}"
            raise typer.BadParameter(message)
        found[name] = value
    return found
