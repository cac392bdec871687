"""Two tiles that are in use must not lie on the same bytes."""

import dataclasses
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.codegen.executable import Executable, Kernel
from scalebox.codegen.lower import lower
from scalebox.codegen.tile_records import TileRecords
from scalebox.ir.core import Program
from scalebox.ir.errors import SimulationFault
from scalebox.ir.language.text import load_file

from .seeded import MACHINE, faults_of, instructions, messages, with_fields

EXAMPLES = Path(__file__).parents[3] / "examples"
#: Small buffers, in which tiles must share places.
TIGHT = {"l0a_bytes": "16384", "l0b_bytes": "32768", "l1_bytes": "131072", "ub_bytes": "65536"}


@cache
def executable(name: str) -> Executable:
    return lower(load_file(EXAMPLES / f"{name}.py", params={}).program, MACHINE).executable


def kernel_of(name: str) -> Kernel:
    (kernel,) = executable(name).kernels
    return kernel


def users(kernel: Kernel, operand: str) -> list[tuple[int, str]]:
    """Return the instructions that use a tile as an operand, and the tile's name."""
    found: list[tuple[int, str]] = []
    first = 0
    for program in kernel.programs:
        tiles = program.tiles
        found += [(first + n, tiles.names[t][1]) for n, name, t in tiles.uses if name == operand]
        first += len(program.program)
    return found


def parsed(text: str) -> Program:
    program = scalebox.pl.parse(text)
    assert isinstance(program, Program)
    return program


def clashes(kernel: Kernel) -> list[SimulationFault]:
    return [each for each in faults_of(kernel) if "must not lie on the same bytes" in each.message]


def test_a_load_over_a_tile_that_is_still_to_be_moved() -> None:
    kernel = kernel_of("mx_matmul")
    (first, a), _, (third, b) = users(kernel, "l1")[:3]
    at = instructions(kernel)[first]["l1"]
    (fault, *_) = clashes(with_fields(kernel, third, l1=at))
    assert (
        f"reads the tile {a!r} in L1, over which instruction {third} (gm_to_l1_nz" in fault.message
    )
    assert f"wrote the tile {b!r} before" in fault.message
    assert "examples/mx_matmul.py" in fault.message
    assert fault.span is not None
    assert fault.span.filename.endswith("mx_matmul.py")
    assert fault.note == "the buffers are 'mat_0' and 'mat_2'"


def test_a_move_over_data_that_a_product_has_still_to_take() -> None:
    """The second product's data goes to the place of the first one's, once it is moved that early."""
    kernel = kernel_of("mx_auto_tile")
    program = instructions(kernel)
    moves = [n for n, each in enumerate(program) if each.mnemonic.startswith("l1_to_l0a")]
    mads = [n for n, each in enumerate(program) if each.mnemonic == "mad_mx"]
    early = [pair for pair in pairwise(moves) if pair[1] < mads[0]]
    for first, second in pairwise(moves):
        if program[first]["dst"] != program[second]["dst"]:
            found = clashes(with_fields(kernel, second, dst=program[first]["dst"]))
            assert bool(found) or (first, second) not in early


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_a_vector_tile_over_another_one(name: str) -> None:
    """Of all ways to put one result on another one some hit it while it is in use."""
    kernel = kernel_of(name)
    program = instructions(kernel)
    results = [index for index, _ in users(kernel, "dst") if program[index].mnemonic[0] == "v"]
    told = 0
    for index in results:
        for at in {program[other]["dst"] for other in results} - {program[index]["dst"]}:
            try:
                told += bool(clashes(with_fields(kernel, index, dst=at)))
            except scalebox.ir.errors.UserError:
                continue  # the instruction does not allow it
    assert told


def test_an_accumulator_over_another_one() -> None:
    text = """
from scalebox.ir import language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[16, 64], pl.FP8E4M3FN], s: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
          b: pl.Tensor[[64, 64], pl.FP8E4M3FN], t: pl.Tensor[[2, 64], pl.FP8E8M0, pl.MX_B_NN],
          x: pl.Out[pl.Tensor[[16, 32], pl.FP32]], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        one = pl.matmul_mx(pl.load(a, [0, 0], [16, 64]), pl.load(s, [0, 0], [16, 2]),
                           pl.load(b, [0, 0], [64, 32]), pl.load(t, [0, 0], [2, 32]))
        two = pl.matmul_mx(pl.load(a, [0, 0], [16, 64]), pl.load(s, [0, 0], [16, 2]),
                           pl.load(b, [0, 32], [64, 32]), pl.load(t, [0, 32], [2, 32]))
        x = pl.store(one, [0, 0], x)
        y = pl.store(two, [0, 0], y)
        return x, y
"""
    (kernel,) = scalebox.compile(parsed(text)).kernels
    assert messages(kernel) == []
    program = instructions(kernel)
    first, second = (n for n, each in enumerate(program) if each.mnemonic == "mad_mx")
    (fault,) = clashes(with_fields(kernel, second, c=program[first]["c"]))
    assert "reads the tile 'one' in L0C" in fault.message
    assert "wrote the tile 'two' before" in fault.message


@pytest.mark.parametrize("options", [{}, {"timing": False}, {"functional": False}])
def test_it_is_a_fault_in_every_kind_of_run(options: dict[str, Any]) -> None:
    whole = executable("mx_matmul")
    kernel = kernel_of("mx_matmul")
    (first, _), _, (third, _) = users(kernel, "l1")[:3]
    wrong = with_fields(kernel, third, l1=instructions(kernel)[first]["l1"])
    broken = Executable(
        whole.name,
        whole.machine,
        whole.machine_digest,
        (wrong,),
        whole.entries,
        whole.default_entry,
    )
    loaded = Executable.from_bytes(broken.to_bytes())
    assert loaded == broken
    inputs = {} if options == {"functional": False} else scalebox_inputs(whole)
    with pytest.raises(SimulationFault, match="must not lie on the same bytes"):
        scalebox.run(loaded, inputs, **options)


def scalebox_inputs(whole: Executable) -> dict[str, object]:
    return {
        param.name: np.zeros(param.shape, np.uint8)
        for param in whole.entry().params
        if param.is_tensor and param.direction.value == "in"
    }


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_tiles_that_share_a_place_one_after_another_are_no_clash(path: Path) -> None:
    """In small buffers the tiles of the examples lie on one another, but never while in use."""
    tight = MACHINE.with_settings(TIGHT, source="tight")
    try:
        kernels = lower(load_file(path, params={}).program, tight).executable.kernels
    except scalebox.ir.errors.UserError:
        pytest.skip("it does not fit")
    for kernel in kernels:
        assert faults_of(kernel, target=tight) == []


def test_a_kernel_without_records_is_run_as_ever() -> None:
    kernel = dataclasses.replace(kernel_of("mx_matmul"), tiles=TileRecords())
    assert messages(kernel) == []


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (TileRecords((("a", "x"),), ((10_000, "src", 0),)), "in order"),
        (TileRecords((("a", "x"),), ((1, "src", 0), (0, "src", 0))), "in order"),
        (TileRecords((("a", "x"),), ((0, "src", 1),)), "numbers from 0 to 0"),
    ],
)
def test_records_that_point_nowhere_are_refused(records: TileRecords, why: str) -> None:
    with pytest.raises(scalebox.ir.errors.UserError, match=why):
        dataclasses.replace(kernel_of("mx_matmul"), tiles=records)
