"""The golden traces: each is run again to the same bytes, and no scale in them can be wrong unseen."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.replay import program_of, replay
from scalebox.ir import numerics
from scalebox.ir.core import Program
from scalebox.ir.numerics.mxarray import MXArray
from scalebox.ir.printer import python_print
from scalebox.ir.target import load_target
from scalebox.traces.bundle import Bundle, load_bundle, save_bundle
from scalebox.traces.compare import compare

from .golden_kernels import KERNELS, NAN, UNIT, GoldenKernel

MOST_BYTES, MOST_BYTES_TOGETHER = 30_000, 450_000
BY_NAME = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
SPECIAL = {"nan_scale", "overflow"}


def file_of(kernel: GoldenKernel) -> Path:
    return Path(__file__).parents[2] / "traces" / "golden" / f"{kernel.name}.hrry"


def recorded(kernel: GoldenKernel, folder: Path) -> Bundle:
    """Run a kernel and return its trace, which names no version, time or cycle."""
    machine = folder / "machine.toml"
    changes = "".join(f"{name} = {value}\n" for name, value in kernel.machine.items())
    machine.write_text(f'inherit = "a5"\n{changes}')
    # Lines of source are those of the text that the trace keeps.
    text = python_print(program_of(kernel.text))
    program = program_of(text)
    result = scalebox.run(program, kernel.inputs, machine=machine)
    return Bundle(
        inputs=kernel.inputs,
        outputs=result.outputs,
        executable=result.executable.to_bytes(),
        machine=machine.read_text(),
        program=text,
        options={"kernel": kernel.name, **result.options},
    )


@BY_NAME
def test_a_trace_is_run_again_to_the_same_bytes(
    kernel: GoldenKernel, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    trace = file_of(kernel)
    if request.config.getoption("--update-golden"):
        save_bundle(trace, recorded(kernel, tmp_path))
    assert trace.is_file(), f"{trace.name} is missing: run with --update-golden"
    report = replay(trace, tmp_path / "again.hrry")
    assert report.ok, "\n".join(report.lines())
    assert report.kept is not None
    assert report.kept.has_same_bytes
    assert report.comparison is not None  # with what the interpreter computes
    assert not report.comparison.warnings
    kept, again = load_bundle(trace), load_bundle(tmp_path / "again.hrry")
    for member in ("executable", "machine", "program"):
        assert getattr(kept, member) == getattr(again, member)
    for name, array in (kept.outputs or {}).items():
        assert np.asarray(array).tobytes() == np.asarray((again.outputs or {})[name]).tobytes()


@BY_NAME
def test_a_trace_holds_what_its_kernel_says(kernel: GoldenKernel, tmp_path: Path) -> None:
    kept, made = load_bundle(file_of(kernel)), recorded(kernel, tmp_path)
    assert list(kept.inputs) == list(kernel.inputs)
    for name, wanted in kernel.inputs.items():
        found = kept.inputs[name]
        for one, other in zip(planes(found), planes(wanted), strict=True):
            assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
    # What the compiler makes of it today computes the same, be the instructions others.
    assert compare(dict(made.outputs or {}), dict(kept.outputs or {}))


def planes(given: Any) -> tuple[np.ndarray, ...]:
    return (given.elements, given.scales) if isinstance(given, MXArray) else (np.asarray(given),)


def test_there_is_a_trace_for_every_kernel_and_no_other() -> None:
    files = {path.name for path in file_of(KERNELS[0]).parent.iterdir()}
    assert files == {file_of(kernel).name for kernel in KERNELS}
    assert len(KERNELS) >= 16


def test_the_traces_are_small() -> None:
    sizes = [file_of(kernel).stat().st_size for kernel in KERNELS]
    assert max(sizes) < MOST_BYTES
    assert sum(sizes) < MOST_BYTES_TOGETHER


def test_the_traces_cover_every_pair_of_operands_that_the_machine_has() -> None:
    found: set[tuple[str, ...]] = set()
    for kernel in KERNELS:
        executable = scalebox.Executable.from_bytes(load_bundle(file_of(kernel)).executable or b"")
        params = {each.name: each.dtype for each in executable.kernels[0].params if each.is_tensor}
        found.add((params["a"], params["b"]))
    assert found == {tuple(pair) for pair in load_target("a5").mad_pairs}


def test_the_traces_hold_the_special_values_that_they_are_named_after() -> None:
    def output(name: str) -> np.ndarray:
        (kernel,) = (each for each in KERNELS if each.name == name)
        return np.asarray((load_bundle(file_of(kernel)).outputs or {})["c"])

    with_nan = np.isnan(output("nan_scale"))
    assert with_nan[3].all()
    assert with_nan[:, [7, 30]].all()
    assert with_nan.sum() == 32 + 2 * 15
    tiny = np.abs(output("subnormal_scale"))
    assert (tiny[tiny > 0] < 2.0**-126).any()
    assert np.isinf(output("overflow")).any()
    assert np.isfinite(output("overflow")).any()
    for kernel in KERNELS:
        outputs = (load_bundle(file_of(kernel)).outputs or {}).values()
        is_finite = all(np.isfinite(np.asarray(each).astype(np.float32)).all() for each in outputs)
        assert is_finite == (kernel.name not in SPECIAL)
        assert kernel.is_sensitive == is_finite


def test_the_traces_hold_what_the_compiler_made_of_the_kernels_they_are_named_after() -> None:
    made = {
        kernel.name: scalebox.Executable.from_bytes(load_bundle(file_of(kernel)).executable or b"")
        for kernel in KERNELS
    }

    def products(name: str) -> int:
        (kernel,) = made[name].kernels
        return sum(each.mnemonic.startswith("mad") for each in kernel.program)

    assert products("e5m2") == 1
    assert products("accumulate") == 2
    assert products("auto_tile") > 1
    assert len(made["spmd"].expand().tasks) == 2
    assert made["compound"].entry().compounds
    for name in ("bias_bf16", "e4m3_e5m2_fp16"):
        outputs = load_bundle(file_of(next(each for each in KERNELS if each.name == name))).outputs
        assert np.asarray((outputs or {})["c"]).dtype.itemsize == 2


# --------------------------------------------------------------------------- sensitivity


def logical(kernel: GoldenKernel, side: str) -> np.ndarray:
    """Return the scale codes of an operand, [M, G] or [G, N]."""
    given = kernel.inputs[side]
    if isinstance(given, MXArray):
        return given.scales
    packed = kernel.inputs[f"s{side}"].view(np.uint8)
    unpack = numerics.unpack_scales_a if side == "a" else numerics.unpack_scales_b
    return unpack(packed.reshape(-1), packed.shape)


def with_scales(kernel: GoldenKernel, side: str, codes: np.ndarray) -> dict[str, Any]:
    given = kernel.inputs[side]
    if isinstance(given, MXArray):
        return {**kernel.inputs, side: MXArray(given.elements, codes, given.dtype, given.axis)}
    pack = numerics.pack_scales_a if side == "a" else numerics.pack_scales_b
    old = kernel.inputs[f"s{side}"]
    return {**kernel.inputs, f"s{side}": pack(codes).reshape(old.shape).view(old.dtype)}


def changes(codes: np.ndarray) -> Iterator[np.ndarray]:
    """Yield other codes for each: the next ones, the ones before, and far ones."""
    yield np.where(codes < NAN - 1, codes + 1, codes - 1).astype(np.uint8)
    yield np.where(codes > 0, codes - 1, codes + 1).astype(np.uint8)
    yield np.full_like(codes, NAN)


def lines_that_change(
    program: Program, kernel: GoldenKernel, wanted: dict[str, np.ndarray], inputs: Any, axis: int
) -> np.ndarray:
    """Return which rows (axis 0) or columns (axis 1) of any output are no longer the same."""
    found = scalebox.interpret(program, inputs)
    size = kernel.inputs["a"].shape[0] if axis == 0 else kernel.inputs["b"].shape[1]
    changed = np.zeros(size, bool)
    for name, array in found.items():
        width = f"u{array.dtype.itemsize}"
        changed |= (array.view(width) != wanted[name].view(width)).any(axis=1 - axis)
    return changed


@pytest.mark.parametrize(
    "kernel", [each for each in KERNELS if each.is_sensitive], ids=lambda kernel: kernel.name
)
def test_every_single_scale_within_the_valid_region_counts_and_none_beyond(
    kernel: GoldenKernel,
) -> None:
    """A row of an output depends on the scales of that row alone, and so does a column.

    So a run in which one group's scale is changed in all rows shows for every row whether that
    scale counts.
    """
    program = program_of(kernel.text)
    wanted = scalebox.interpret(program, kernel.inputs)
    rows, depth, cols = kernel.valid
    for axis, (side, lines) in enumerate((("a", rows), ("b", cols))):
        codes = logical(kernel, side)
        across = 1 - axis
        for group in range(codes.shape[across]):
            counts = group < -(-depth // 32)
            at = (slice(None), group) if axis == 0 else (group, slice(None))
            for other in changes(codes):
                wrong = codes.copy()
                wrong[at] = other[at]
                inputs = with_scales(kernel, side, wrong)
                changed = lines_that_change(program, kernel, wanted, inputs, axis)
                assert changed[:lines].all() == counts, (side, group)
                assert not changed[lines:].any()
                assert counts or not changed.any()


def test_one_scale_changes_its_own_row_alone() -> None:
    """What the test above relies on, tried scale by scale."""
    kernel = KERNELS[0]
    program = program_of(kernel.text)
    wanted = scalebox.interpret(program, kernel.inputs)
    for axis, side in enumerate("ab"):
        codes = logical(kernel, side)
        for line, group in ((0, 0), (5, 2), (15, 3)):
            wrong = codes.copy()
            wrong[(line, group) if axis == 0 else (group, line)] ^= 1
            inputs = with_scales(kernel, side, wrong)
            changed = lines_that_change(program, kernel, wanted, inputs, axis)
            assert np.flatnonzero(changed).tolist() == [line]


def test_the_scales_are_not_all_the_same() -> None:
    for kernel in KERNELS:
        for side in "ab":
            codes = logical(kernel, side)
            assert len(set(codes.reshape(-1).tolist()) - {UNIT}) > 3
