"""The corpus: kernels that use what the passes have to deal with, and inputs that tell scales apart."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from scalebox.app.drawn_inputs import draw_inputs
from scalebox.ir import language as pl
from scalebox.ir.core import Function, Program
from scalebox.ir.expr import ScalarType, Var
from scalebox.ir.interp import interpret_program, select_entry
from scalebox.ir.mx_uses import CompoundUses

FOLDER = Path(__file__).resolve().parents[2] / "cases" / "programs"
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """A kernel of the corpus, its sizes, and the scalars that it is launched with."""

    name: str
    params: Mapping[str, int] = field(default_factory=dict[str, int])
    scalars: Mapping[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        numbers = "-".join(f"{k}{v}" for k, v in (*self.params.items(), *self.scalars.items()))
        return f"{self.name}-{numbers}" if numbers else self.name

    def program(self) -> Program:
        return pl.load_file(FOLDER / f"{self.name}.py", params=self.params).program


def _several(name: str, key: str, *values: int, **params: int) -> Iterator[Case]:
    return (Case(name, {key: value, **params}) for value in values)


#: What runs on the machine as well as in the interpreter.
CASES = [
    *(Case("k_loop", {"K": 64 * (1 + t), "STAGE": 2}) for t in (0, 1, 4, 5)),
    *(Case("k_loop", {"K": 64 * 6, "STAGE": s}) for s in (1, 3, 4)),
    *_several("k_loop_bias_bf16", "STAGE", 1, 2, 3),
    *(Case("dynamic_trips", {"STAGE": s}, {"end": 64 * e}) for s in (2, 3) for e in (0, 1, 4, 5)),
    *_several("backwards", "STAGE", 1, 2, 3),
    Case("backwards", {"FIRST": 0, "LAST": 64}),
    Case("nested_loops", {"STAGE": 2, "OUTER": 1}),
    Case("nested_loops", {"STAGE": 2, "OUTER": 2}),
    *_several("branch", "STAGE", 1, 2),
    *(Case("branch_without_else", {}, {"n": n}) for n in range(3)),
    *_several("shared_scale", "STAGE", 1, 2, 3),
    *_several("scale_before_the_loop", "STAGE", 1, 2, 3),
    Case("two_outputs"),
    Case("views"),
    *_several("tiled", "STAGE", 1, 2),
    Case("narrowed"),
    Case("narrowed", {"VM": 1, "VK": 1, "VN": 1}),
    Case("narrowed", {"VM": 32, "VK": 33, "VN": 64}),
    *(Case("carried_scalars", {"STAGE": s, "TRIPS": t}) for s in (1, 2) for t in (0, 3, 4)),
    *_several("carried_tiles", "TRIPS", 0, 1, 4),
    *(Case("carried_tiles_pipelined", {"STAGE": s, "TRIPS": t}) for s in (1, 2) for t in (0, 3)),
    *(Case("tile_of_a_branch", {}, {"n": n}) for n in range(2)),
    *_several("stores_in_pipeline", "STAGE", 1, 2, 3),
    Case("more_stages_than_room"),
    Case("whole_matrices"),
    Case("whole_matrices", {"M": 32, "K": 128, "VK": 70, "N": 1152, "VN": 1130}),
    Case("batched"),
    Case("batched", {"B": 1, "VM": 20}),
    *_several("nz_weights", "STAGE", 1, 2),
    *(Case("spmd_blocks", {"M": m, "K": k}) for m, k in ((40, 192), (16, 64), (33, 128))),
    *_several("spmd_kernel", "SHARE", 1, 2, 6),
    *_several("regions", "ROWS", 0, 1, 3),
    *_several("submits", "TRIPS", 0, 1, 3),
    *(Case("while_loops", {}, {"end": end}) for end in (0, 64, 128, 256)),
    *_several("unrolled", "STEPS", 1, 2, 4),
    *(Case("tensor_products", {}, {"n": n}) for n in range(3)),
    Case("tensor_read_again"),
    Case("inlined"),
    Case("quantised"),
    Case("casts"),
    *_several("slots", "TRIPS", 1, 4, 5),
    Case("compound_launches"),
    *_several("compound_windows", "STEP", 16, 32),
    *(Case("compound", {"FOUR_BITS": f}, {"n": n}) for f in range(2) for n in range(2)),
]
#: What has no instructions: jumps, and returns out of loops.
INTERPRETED = [
    *(Case("control_flow", {}, {"n": n}) for n in (0, 1, 2, 5)),
]


def draw(
    entry: Function, scalars: Mapping[str, int], axes: Mapping[Var, int] | None = None
) -> dict[str, Any]:
    """Inputs for an entry; scales differ from row to row and from group to group."""
    tensors = [p for p in entry.params if not isinstance(p.type, ScalarType)]
    directions = dict(zip(entry.params, entry.param_directions, strict=True))
    shown = Function(
        entry.name, [(p, directions[p]) for p in tensors], [], entry.body, type=entry.func_type
    )
    return {**draw_inputs(shown, 1, grouped_axes=axes), **scalars}


def entry_and_inputs(program: Program, scalars: Mapping[str, int]) -> tuple[str, dict[str, Any]]:
    entry = select_entry(program)
    return entry.name, draw(entry, scalars, CompoundUses(program).grouped_axes(entry))


def interpret(program: Program, entry: str, inputs: Mapping[str, Any]) -> Arrays:
    return interpret_program(program, inputs, entry=entry)


def assert_same_bits(found: Arrays, wanted: Arrays) -> None:
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes(), name
