"""The record of the machine that a program is for, and how a machine file becomes one.

The class :class:`Target` is the table of fields: reading files, `--set FIELD=VALUE`, checks and
documentation follow from it. Every value carries where it comes from and how well it is known.
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass, field, fields, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from .errors import MachineError
from .suggest import near
from .target_spec import (
    FieldType,
    Provenance,
    Spec,
    Status,
    Unit,
    Value,
    count,
    cycles,
    rate,
    size,
    spec,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_MACHINES = Path(__file__).parent / "machines"
_TABLE_KEYS = ("value", "source", "status")
_CUBE_ROWS = 16
_CUBE_COLUMNS = 16


@dataclass(frozen=True, kw_only=True)
class Target:
    """A machine: sizes, rates and latencies, one field each, the unit last in its name.

    Raises:
        MachineError: If a value is of the wrong type or impossible.
    """

    name: str
    provenance: Mapping[str, Provenance] = field(compare=False, repr=False)
    """Field name to where its value comes from."""

    clock_hz: int = spec(FieldType.INTEGER, Unit.HERTZ, "Clock of a core.", least=1)
    cores: int = count("Clusters of one cube core and two vector cores.", most=4096)
    launch_seconds: float = spec(
        FieldType.NUMBER, Unit.SECONDS, "From the host's call to the first instruction.", most=60
    )

    l1_bytes: int = size("L1, the buffer of a cube core.", least=512, most=1 << 24)
    l0a_bytes: int = size("L0A, left operands.", least=512, most=1 << 18, multiple=512)
    l0b_bytes: int = size("L0B, right operands.", least=512, most=1 << 18, multiple=512)
    l0c_bytes: int = size("L0C, accumulators.", least=1024, most=1 << 20)
    bias_bytes: int = size("Bias table.", least=32, most=1 << 14)
    scale_a_bytes: int = size("Scale buffer of left operands.", least=32, most=1 << 14)
    scale_b_bytes: int = size("Scale buffer of right operands.", least=32, most=1 << 14)
    ub_bytes: int = size("Unified buffer of a vector core.", least=32, most=1 << 20)

    scalar_cycles: int = cycles("A scalar instruction.", least=1)
    branch_taken_cycles: int = cycles("A branch that is taken.", least=1)
    queue_entries: int = count("Instructions that a pipe's queue holds.")
    flag_cycles: int = cycles("From the end of a set_flag to the end of its wait_flag.")
    core_flag_cycles: int = cycles("The same from a set_core_flag to its wait_core_flag.")
    flag_counter_max: int = count("Sets of one flag that may be outstanding.", most=1 << 15)

    gm_port_bytes_per_cycle: float = rate("Between a core and global memory, at most.")
    l2_bytes: int = size("Second-level cache of the device.")
    l2_block_bytes: int = size("Granularity in which the model tracks the cache.", least=32)
    l2_hit_cycles: int = cycles("Latency of a load that hits the second-level cache.")
    l2_miss_cycles: int = cycles("What a miss adds to that latency.")
    l2_bytes_per_cycle: float = rate("Second-level cache, all cores together.")
    hbm_bytes_per_cycle: float = rate("Device memory, all cores together.")

    l1_fill_bytes_per_cycle: float = rate("Zeros into L1.")

    l1_to_l0a_bytes_per_cycle: float = rate("From L1 to L0A.")
    l1_to_l0b_bytes_per_cycle: float = rate("From L1 to L0B.")
    l1_to_scale_bytes_per_cycle: float = rate("From L1 to a scale buffer.")
    l1_to_bias_bytes_per_cycle: float = rate("From L1 to the bias table.")
    mte1_instruction_cycles: int = cycles("What every transfer from L1 takes beside its bytes.")

    mad_head_cycles: int = cycles("From the start of a mad to its first step.")
    mad_8bit_k_elements: int = count(
        "Elements of K that a step takes of 8-bit operands.", unit=Unit.ELEMENTS, most=4096
    )
    mad_4bit_k_elements: int = count(
        "Elements of K that a step takes of 4-bit operands.", unit=Unit.ELEMENTS, most=4096
    )
    mad_16bit_k_elements: int = count(
        "Elements of K that a step takes of 16-bit operands.", unit=Unit.ELEMENTS, most=4096
    )
    mad_32bit_k_elements: int = count(
        "Elements of K that a step takes of 32-bit operands.", unit=Unit.ELEMENTS, most=4096
    )
    mad_32bit_passes: int = count("Passes of a step on 32-bit operands.", most=64)
    mad_pairs: tuple[tuple[str, str], ...] = spec(
        FieldType.PAIRS, Unit.COUNT, "Element types of left and right that mad_mx multiplies."
    )
    vector_casts: tuple[tuple[str, str], ...] = spec(
        FieldType.CASTS, Unit.COUNT, "Conversions that a vector core has an instruction for."
    )
    vector_step_bytes: int = size("What a vector core works on in one step.", least=32)
    vector_startup_cycles: int = cycles("From the start of a vector instruction to its first step.")
    vector_issue_cycles: int = cycles("A step of a vector instruction.", least=1)
    vector_quant_issue_cycles: int = cycles("A step of quantising.", least=1)
    vector_drain_cycles: int = cycles("From the last result of a vector instruction to its end.")
    vector_move_cycles: int = cycles("Latency of what only loads and stores.")
    vector_add_cycles: int = cycles("Latency of sums and whatever is as simple.")
    vector_mul_cycles: int = cycles("Latency of products.")
    vector_exp_cycles: int = cycles("Latency of exp and the other functions but those of division.")
    vector_div_cycles: int = cycles("Latency of quotients, remainders and reciprocals.")
    ub_to_l1_bytes_per_cycle: float = rate("From a vector core's UB to the cube core's L1.")
    scale_beat_bytes: int = spec(
        FieldType.INTEGER,
        Unit.BYTES,
        "What a side of the scale-decode unit reads a cycle.",
        least=1,
        most=64,
        power_of_two=True,
    )
    scale_buffered_boxes: int = count("Boxes that a side of the scale-decode unit holds.", most=64)
    scale_read_cycles: int = cycles(
        "From a request of the scale-decode unit to the first beat of its box.", least=1
    )

    drain_fixed_cycles: float = cycles("What every store from L0C takes.", whole=False)
    drain_row_cycles: float = cycles("Least time of a row.", whole=False)
    drain_bytes_per_cycle: float = rate("FP32 bytes of a row, where that takes longer.")
    drain_misalignment_cycles: float = cycles(
        "Added a row, times the odd part of its FP32 bytes in units of drain_c0_bytes less 1.",
        whole=False,
    )
    drain_c0_bytes: int = size("The unit in which a row is aligned.", least=4, multiple=4)

    def __post_init__(self) -> None:
        for name, rule in specs().items():
            object.__setattr__(self, name, rule.checked(name, getattr(self, name)))
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def digest(self) -> str:
        """SHA-256 of all values, in hexadecimal; names and sources do not matter."""
        values = {name: getattr(self, name) for name in specs()}
        return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def mad_k_elements(self, bits: int) -> int:
        """Return the elements of K that a cube step takes of operands of `bits` bits, 4 or 8."""
        match bits:
            case 4:
                return self.mad_4bit_k_elements
            case 8:
                return self.mad_8bit_k_elements
            case _:
                message = f"The cube's MX operands must have elements of 4 or 8 bits, not {bits}."
                raise MachineError(message)

    def peak_macs_per_cycle(self, bits: int) -> int:
        """Return the multiplications a cycle of one busy cube on operands of `bits` bits."""
        return _CUBE_ROWS * _CUBE_COLUMNS * self.mad_k_elements(bits)

    def with_settings(
        self, settings: Mapping[str, object], *, source: str = "set by the caller"
    ) -> Target:
        """Return this machine with some fields changed.

        Args:
            settings: Field name to value; text is read as on the command line.
            source: What the changed fields give as their source.

        Raises:
            MachineError: For an unknown field or an impossible value.
        """
        if not settings:
            return self
        values: dict[str, Value] = {}
        for name, value in settings.items():
            rule = _spec_of(name)
            text = isinstance(value, str)
            values[name] = rule.parsed(name, value) if text else rule.checked(name, value)
        origin = Provenance(source, Status.ASSUMED)
        provenance = {**self.provenance, **dict.fromkeys(values, origin)}
        return replace(self, provenance=provenance, **values)

    def to_toml(self) -> str:
        """Return a machine file that :func:`load_target` reads as this very machine."""
        lines = [f"name = {json.dumps(self.name)}"]
        for name, rule in specs().items():
            value, origin = getattr(self, name), self.provenance[name]
            pairs = rule.type.is_pairs
            shown = json.dumps([list(pair) for pair in value]) if pairs else repr(value)
            source, status = json.dumps(origin.source), json.dumps(origin.status.value)
            lines += [
                "",
                f"[{name}]",
                f"value = {shown}",
                f"source = {source}",
                f"status = {status}",
            ]
        return "\n".join(lines) + "\n"


@cache
def specs() -> Mapping[str, Spec]:
    """Return field name to rule, in the order of the record."""
    table = {each.name: each.metadata.get("spec") for each in fields(Target)}
    return MappingProxyType({name: rule for name, rule in table.items() if rule is not None})


def machine_names() -> tuple[str, ...]:
    """Return the names of the machines that come with the package."""
    return tuple(sorted(path.stem for path in _MACHINES.glob("*.toml")))


def load_target(machine: str | os.PathLike[str] | Target = "a5") -> Target:
    """Return the record of a machine.

    Args:
        machine: A name of `machine_names()`, the path of a TOML file, or a record, which is
            returned as it is.

    Raises:
        MachineError: If there is no such machine, or its file is unreadable, has an unknown key,
            lacks one, or gives an impossible value.
    """
    if isinstance(machine, Target):
        return machine
    if not isinstance(machine, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"A machine must be a name, a path or a Target, not a {type(machine).__name__}."
        raise MachineError(message, hint=near(machine, machine_names()))
    path = _find(machine, Path())
    name, entries = _read(path, ())
    values: dict[str, Value] = {}
    for key, rule in specs().items():
        if key not in entries:
            message = f"{key} must be given, or come by inherit, in the machine file {str(path)!r}."
            raise MachineError(message)
        values[key] = rule.checked(key, entries[key][0])
    provenance = {key: origin for key, (_, origin) in entries.items()}
    return Target(name=name, provenance=provenance, **values)  # pyright: ignore[reportArgumentType] - checked above


_Entries = dict[str, tuple[Value, Provenance]]


def _find(machine: str | os.PathLike[str], folder: Path) -> Path:
    text = str(machine)
    if text in machine_names():
        return _MACHINES / f"{text}.toml"
    path = folder / text
    if path.suffix == ".toml" or len(path.parts) > 1 or os.path.isfile(path):  # noqa: PTH113 - of any length
        return path
    message = f"A machine must be a name or the path of a TOML file, not {text!r}."
    raise MachineError(message, hint=near(text, machine_names()))


def _read(path: Path, readers: tuple[Path, ...]) -> tuple[str, _Entries]:
    """Return the name and the fields of one file, those that it inherits included."""
    resolved = path.resolve()
    if resolved in readers:
        circle = " → ".join(each.name for each in (*readers, resolved))
        message = f"A machine file must not inherit from itself, as {circle} does."
        raise MachineError(message)
    document = _parse(path)
    entries: _Entries = {}
    name = document.pop("name", path.stem)
    parent = document.pop("inherit", None)
    for key, value in (("name", name), ("inherit", parent)):
        if value is not None and not (isinstance(value, str) and value):
            message = f"{key} must be a non-empty string, not {value!r}, in {str(path)!r}."
            raise MachineError(message)
    if isinstance(parent, str):
        _, entries = _read(_find(parent, path.parent), (*readers, resolved))
    try:
        for key, value in document.items():
            entries[key] = _entry(key, value, path)
    except MachineError as error:
        where = f"in the machine file {str(path)!r}"
        raise MachineError(error.message, hint=error.hint, note=where) from error
    return str(name), entries


def _parse(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"The machine file {str(path)!r} must be readable, which it is not: {error}."
        raise MachineError(message) from error
    except (ValueError, RecursionError) as error:
        message = f"The machine file {str(path)!r} must be UTF-8 TOML, which it is not: {error}."
        raise MachineError(message) from error


def _entry(key: str, value: object, path: Path) -> tuple[Value, Provenance]:
    rule = _spec_of(key)
    table = cast("dict[str, object]", value) if isinstance(value, dict) else {"value": value}
    for each in table:
        if each not in _TABLE_KEYS:
            message = f"A key of {key} must be one of {', '.join(_TABLE_KEYS)}, not {each!r}."
            raise MachineError(message)
    if "value" not in table:
        message = f"{key} must have a value, which is missing."
        raise MachineError(message)
    source = table.get("source", f"set in {path.name}")
    status = table.get("status", Status.ASSUMED.value)
    if not isinstance(source, str) or not source:
        message = f"source of {key} must be a non-empty string, not {source!r}."
        raise MachineError(message)
    known = {each.value: each for each in Status}
    if not isinstance(status, str) or status not in known:
        message = f"status of {key} must be one of {', '.join(known)}, not {status!r}."
        raise MachineError(message)
    return rule.checked(key, table["value"]), Provenance(source, known[status])


def _spec_of(name: str) -> Spec:
    rule = specs().get(name)
    if rule is None:
        message = f"A machine field must be one of the record's, not {name!r}."
        raise MachineError(message, hint=near(name, specs(), listed_in="docs/machine.md"))
    return rule


def describe(target: Target) -> str:
    """Return every field of `target` as a Markdown page."""
    lines = [
        f"# Machine {target.name}\n",
        "<!-- Generated by `python -m scalebox.ir.target`; change the machine file instead. -->\n",
        "| field | value | must be | meaning | status | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, rule in specs().items():
        value, origin = getattr(target, name), target.provenance[name]
        pairs = rule.type.is_pairs
        shown = ", ".join("*".join(pair) for pair in value) if pairs else value
        cells = (f"`{name}`", shown, rule.rule, rule.doc, origin.status.value, origin.source)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(describe(load_target()), end="")
