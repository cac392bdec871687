"""An executable serves every machine that its compilation would not tell from its own."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import scalebox
from scalebox.app.kernel_file import load_kernel_file
from scalebox.app.sweep.compile_reuse import Compilations
from scalebox.ir.core import Program
from scalebox.ir.errors import UserError
from scalebox.ir.target import Target, load_target, specs
from scalebox.ir.target_spec import FieldType

EXAMPLES = ("mx_matmul.py", "mx_auto_tile.py", "layer_norm.py", "softmax.py")


def changed(target: Target, name: str) -> list[Target]:
    """Return machines of which one field is another one, as far as such machines can be."""
    value: Any = getattr(target, name)
    match specs()[name].type:
        case FieldType.PAIRS | FieldType.CASTS:
            tried: list[Any] = [value[:-1], value[:1]]
        case FieldType.NUMBER:
            tried = [value * 2 + 1, value / 2]
        case FieldType.INTEGER:
            tried = [value * 2, value // 2, value + 1, value // 4]
    found: list[Target] = []
    for each in tried:
        try:
            found.append(target.with_settings({name: each}))
        except UserError:
            continue
    return found


def outcome(build: Callable[[], Any]) -> bytes | str:
    """Return an executable as bytes, or why there is none."""
    try:
        return build().to_bytes()
    except UserError as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_what_is_kept_is_what_compiling_anew_makes_whichever_field_changes(
    example: str, root: Path
) -> None:
    program = load_kernel_file(root / "examples" / example).program
    target = load_target()
    kept = Compilations(program)
    kept.of(target)
    for name in specs():
        for other in changed(target, name):
            anew = outcome(lambda other=other: scalebox.compile(program, machine=other))
            assert outcome(lambda other=other: kept.of(other)) == anew, name


def test_a_field_that_only_cycles_depend_on_needs_no_second_compilation(
    gemm: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, target = gemm(32, 128, 64), load_target()
    kept = Compilations(program)
    first = kept.of(target)
    monkeypatch.setattr("scalebox.app.sweep.compile_reuse.compile_program", None)
    other = target.with_settings({"gm_port_bytes_per_cycle": 64})
    found = kept.of(other)
    assert found == replace(first, machine_digest=other.digest)


def test_a_size_that_a_compilation_looks_at_needs_one(gemm: Callable[..., Program]) -> None:
    kept = Compilations(gemm(32, 128, 64))
    kept.of(load_target())
    with pytest.raises(UserError, match="of L1"):
        kept.of(load_target().with_settings({"l1_bytes": 512}))
