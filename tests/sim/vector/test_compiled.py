"""What compiled code does to UB is what numpy's routines do, byte for byte, masks included.

Every instruction runs twice on one image of UB: as it is, and with every line of the plan telling
that Python executes it, on the routines that `tests/ir/numerics` holds against ml_dtypes.
"""

from collections.abc import Callable, Iterator
from itertools import cycle, islice, permutations
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.isa.vector_rules import FLOAT_TYPES, NUMBER_TYPES, type_of
from scalebox.codegen.isa.vocabulary import (
    CoreKind,
    Space,
    VectorBinary,
    VectorComparison,
    VectorReduction,
    VectorType,
    VectorUnary,
)
from scalebox.sim import core
from scalebox.sim.vector.plan import MEANING, Meaning

Bytes = npt.NDArray[np.uint8]
SHAPES = {"rows apart": (5, 7), "one row": (1, 100), "a column": (9, 1), "no gap": (6, 8)}
SPECIAL = {
    VectorType.FP32: (0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFFFFFFF, 1, 0x807FFFFF,
                      0x7F7FFFFF, 0x3F800000, 0x47800000, 0x33000000, 0x387FE000),
    VectorType.FP16: (0, 1 << 15, 0x7C00, 0xFC00, 0x7E01, 0xFFFF, 1, 0x83FF, 0x7BFF, 0x3C00),
    VectorType.BF16: (0, 1 << 15, 0x7F80, 0xFF80, 0x7FC1, 0xFFFF, 1, 0x807F, 0x7F7F, 0x3F80),
}  # fmt: skip
NUMBERS = sorted(NUMBER_TYPES)
HAS_NAN = FLOAT_TYPES | {VectorType.E4M3, VectorType.E5M2}
A, B, C = 0, 16384, 32768
SIZE = 65536


def image_of(kind: VectorType, seed: int) -> Bytes:
    """Return bytes that hold many special numbers of a type, and any others."""
    rng = np.random.default_rng(seed)
    width = max(1, kind.bits // 8)
    codes = rng.integers(0, 1 << (8 * width), SIZE // width, dtype=np.uint64)
    extremes = 0, 1, (1 << (8 * width)) - 1, 1 << (8 * width - 1)
    special = np.array(SPECIAL.get(kind, extremes), np.uint64)
    chosen = rng.random(codes.size) < 0.3
    codes[chosen] = rng.choice(special, int(chosen.sum()))
    return codes.astype(f"u{width}").view(np.uint8)


def pitch_of(kind: VectorType, cols: int) -> int:
    """Return a pitch of one unit more than a row needs, or of none where eight words make one."""
    if cols == 1:
        return 0
    size = cols * kind.bits // 8
    return size // 32 if size % 32 == 0 else size // 32 + 2


def shapes(kind: VectorType, *pitches: str) -> Iterator[str]:
    for rows, cols in SHAPES.values():
        named = ", ".join(f"{name}={pitch_of(kind, cols)}" for name in pitches)
        yield f"rows={rows}, cols={cols}, {named}"


def unary_texts() -> Iterator[tuple[VectorType, str]]:
    for op in VectorUnary:
        for kind in sorted(type_of(op)):
            for shape in shapes(kind, "dst_pitch", "src_pitch"):
                yield kind, f"v_unary ub[{C}], ub[{A}], op={op.name}, type={kind.name}, {shape}"


def binary_texts() -> Iterator[tuple[VectorType, str]]:
    for op in VectorBinary:
        kinds = FLOAT_TYPES if op is VectorBinary.REM else type_of(op)
        for kind in sorted(kinds):
            what = f"op={op.name}, type={kind.name}"
            for shape in shapes(kind, "dst_pitch", "a_pitch", "b_pitch"):
                yield kind, f"v_binary ub[{C}], ub[{A}], ub[{B}], {what}, {shape}"
                yield kind, f"v_binary ub[{A}], ub[{A}], ub[{B}], {what}, {shape}"
            for shape in shapes(kind, "dst_pitch", "a_pitch"):
                for swap in range(2):
                    yield kind, f"v_scalar ub[{C}], ub[{A}], x1, {what}, swap={swap}, {shape}"
                for axis in ("row", "col"):
                    yield kind, f"v_expand ub[{C}], ub[{A}], ub[{B}], {what}, {shape}, axis={axis}"


def comparison_texts() -> Iterator[tuple[VectorType, str]]:
    for op in VectorComparison:
        for kind in NUMBERS:
            what = f"op={op.name}, type={kind.name}"
            for shape in shapes(kind, "dst_pitch", "a_pitch", "b_pitch"):
                yield kind, f"v_compare ub[{C}], ub[{A}], ub[{B}], {what}, {shape}"
            for shape in shapes(kind, "dst_pitch", "a_pitch"):
                yield kind, f"v_compare_scalar ub[{C}], ub[{A}], x1, {what}, {shape}"


def reduction_texts() -> Iterator[tuple[VectorType, str]]:
    for op in VectorReduction:
        for kind in NUMBERS:
            for axis in ("row", "col"):
                what = f"op={op.name}, axis={axis}, type={kind.name}"
                for shape in shapes(kind, "src_pitch"):
                    yield kind, f"v_reduce ub[{C}], ub[{A}], {what}, {shape}"


def layout_texts() -> Iterator[tuple[VectorType, str]]:
    for kind in VectorType:
        what, odd = f"type={kind.name}", kind.bits >= 8
        skips = f"dst_skip={1 if odd else 2}, src_skip={2 if kind.bits < 64 else 1}"
        for rows, cols in SHAPES.values() if odd else ((5, 8), (1, 100)):
            shape, pitch = f"rows={rows}, cols={cols}", pitch_of(kind, cols)
            pitches = f"dst_pitch={pitch}, src_pitch={pitch}"
            yield kind, f"v_move ub[{C}], ub[{A}], {what}, {skips}, {shape}, {pitches}"
            yield kind, f"v_move ub[{A + 32}], ub[{A}], {what}, {skips}, {shape}, {pitches}"
            yield kind, f"v_move_at ub[{C}], ub[{A}], {what}, {skips}, {shape}, {pitches}, x2, x3"
            dst = f"dst_skip=0, {shape}, dst_pitch={pitch}"
            yield kind, f"v_fill ub[{C}], x1, {what}, {dst}"
            if not odd:
                continue
            turned = pitch_of(kind, rows)
            yield (
                kind,
                f"v_transpose ub[{C}], ub[{A}], {what}, {shape}, dst_pitch={turned}, "
                f"src_pitch={pitch}",
            )
            if kind in NUMBER_TYPES:
                yield (
                    kind,
                    f"v_select ub[{C}], ub[{A}], ub[{B}], invert={rows % 2}, {what}, {shape}, "
                    f"{pitches}, mask_pitch={pitch_of(VectorType.UINT8, cols)}",
                )
    for rows, cols in ((1, 2), (17, 3), (64, 16)):
        shape = f"rows={rows}, cols={cols}, src_pitch=1"
        yield VectorType.UINT8, f"v_scale_boxes ub[{C}], ub[{A}], {shape}"


def turning_texts() -> Iterator[tuple[VectorType, str]]:
    """Tiles of more than one block of 8 x 8, with and without rows and columns beside them."""
    for kind in VectorType:
        for rows, cols in ((8, 8), (16, 32), (19, 33), (7, 40), (40, 5)):
            if kind.bits >= 8:
                yield (
                    kind,
                    f"v_transpose ub[{C}], ub[{A}], type={kind.name}, rows={rows}, cols={cols}, "
                    f"dst_pitch={pitch_of(kind, rows)}, src_pitch={pitch_of(kind, cols)}",
                )


def quantiser_texts() -> Iterator[tuple[VectorType, str]]:
    for kind in sorted(FLOAT_TYPES):
        for element in ("e4m3", "e5m2", "e2m1"):
            if element == "e2m1" and kind is VectorType.FP32:
                continue
            for rule in ("floor", "nv"):
                what = f"type={kind.name}, element={element}, rule={rule}"
                wide, place = kind.bits // 8, f"ub[{C}], ub[{A}], ub[{B}]"
                for rows, cols, scale_pitch in (
                    (9, 96, 1),
                    (40, 32, 0),
                    (1, 512, 1),
                    (150 // wide, 64, 1),
                ):
                    yield (
                        kind,
                        f"v_quant_mx {place}, {what}, rows={rows}, cols={cols}, "
                        f"dst_pitch={cols // 32}, src_pitch={cols * wide // 32}, "
                        f"scale_pitch={scale_pitch}",
                    )


def cast_texts() -> Iterator[tuple[VectorType, str]]:
    modes = cycle(("none", "rint", "round", "floor", "ceil", "trunc", "odd"))
    for kind, to in permutations(VectorType, 2):
        if to is VectorType.E2M1 and kind in HAS_NAN:
            continue
        is_narrow = VectorType.E2M1 in (kind, to)
        for rows, cols in ((5, 8), (1, 100), (6, 64)) if is_narrow else SHAPES.values():
            for _ in range(2):
                yield (
                    kind,
                    f"v_cast ub[{C}], ub[{A}], type={kind.name}, to={to.name}, mode={next(modes)}, "
                    f"rows={rows}, cols={cols}, dst_pitch={pitch_of(to, cols)}, "
                    f"src_pitch={pitch_of(kind, cols)}",
                )


FAMILIES: dict[str, Callable[[], Iterator[tuple[VectorType, str]]]] = {
    "unary": unary_texts,
    "binary": binary_texts,
    "comparisons": comparison_texts,
    "reductions": reduction_texts,
    "layout": layout_texts,
    "turning": turning_texts,
    "quantiser": quantiser_texts,
    "casts": cast_texts,
}
STEP = {"binary": 5, "comparisons": 3}
"""Every how manieth instruction of a family is run; the step meets every shape of every function."""


class Both:
    """Runs an instruction in compiled code and in Python."""

    def __init__(self, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bench, self.monkeypatch, self.plan = bench, monkeypatch, core.plan

    def run(self, kind: VectorType, text: str, **options: Any) -> bool:
        """Compare; return whether compiled code knew the instruction."""
        number = int(image_of(kind, 5)[:8].view(np.int64)[0])
        setting = f"movi x1, {number >> 32}\nmovi x2, {number & 0x7FFFFFFF}\nshli x1, x1, 32\n"
        setting += "or x1, x1, x2\nmovi x2, 64\nmovi x3, 96\n"
        image = image_of(kind, 7)
        kept: list[Any] = []

        def python_only(program: Any) -> Any:
            lines = self.plan(program)
            kept.append(lines[:, MEANING].any())
            lines[:, MEANING] = Meaning.PYTHON
            return lines

        results: list[Any] = []
        for make in (self.plan, python_only):
            self.monkeypatch.setattr(core, "plan", make)
            machine, _, found = self.bench.apply(
                setting + text.lower(),
                preset={Space.UB: image},
                core=CoreKind.AIV,
                **options,
            )
            local = machine.local
            results.append((local.view(Space.UB), local.written_view(Space.UB), found))
        for first, second in zip(results[0][:2], results[1][:2], strict=True):
            np.testing.assert_array_equal(first, second, err_msg=text)
        assert results[0][2] == results[1][2], text
        return bool(kept[0])


@pytest.fixture
def both(bench: Any, monkeypatch: pytest.MonkeyPatch) -> Both:
    return Both(bench, monkeypatch)


@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_instructions_leave_the_same_bytes_and_masks(both: Both, family: str) -> None:
    texts = islice(FAMILIES[family](), 0, None, STEP.get(family, 1))
    compiled = [both.run(kind, text) for kind, text in texts]
    assert sum(compiled) > len(compiled) // 4


@pytest.mark.parametrize("family", FAMILIES)
def test_a_hole_is_told_the_same_way(both: Both, family: str) -> None:
    rng = np.random.default_rng(3)
    texts = list(FAMILIES[family]())
    for index in rng.choice(len(texts), min(40, len(texts)), replace=False):
        for place in (A, A + 5, B, B + 2):
            both.run(*texts[int(index)], hole=(Space.UB, place))


def test_masks_are_neither_read_nor_written_without_tracking(both: Both) -> None:
    for texts in FAMILIES.values():
        both.run(*next(texts()), track=False)


@pytest.mark.parametrize("cols", [2, 34])
def test_a_cast_to_four_bits_is_packed_and_leaves_what_stands_beside(bench: Any, cols: int) -> None:
    values = np.linspace(-7, 7, 3 * cols, dtype=np.float32).reshape(3, cols)
    image = np.zeros((3, 8 * 32), np.uint8)
    image[:, : 4 * cols] = values.view(np.uint8)
    machine, _, found = bench.apply(
        f"v_cast ub[{C}], ub[0], type=fp32, to=e2m1, mode=rint, rows=3, cols={cols}, dst_pitch=1, "
        "src_pitch=8",
        preset={Space.UB: np.concatenate([image.reshape(-1), np.full(SIZE - 768, 0xEE, np.uint8)])},
        core=CoreKind.AIV,
    )
    assert not found
    codes = values.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    lines = machine.local.view(Space.UB)[C : C + 96].reshape(3, 32)
    np.testing.assert_array_equal(lines[:, : cols // 2], codes[:, 0::2] | codes[:, 1::2] << 4)
    assert (lines[:, cols // 2 :] == 0xEE).all()
