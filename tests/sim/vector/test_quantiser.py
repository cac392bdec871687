"""The machine's quantiser against the plain numpy one of `ir.numerics`, bit for bit.

Every code of the 16-bit sources goes through it in three surroundings: beside its neighbours, beside
random others, and as the largest of its group. Float32 is drawn.
"""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalebox.codegen.isa.vocabulary import CoreKind, Space
from scalebox.ir.dtypes import BFloat16, DType, Float16
from scalebox.ir.numerics import codec, quantization, reference_quantize
from scalebox.ir.numerics.block_format import InfinityPolicy, ScaleRule, block_format_of

Array = npt.NDArray[Any]
SOURCES = {"fp32": DType.Float32, "fp16": Float16, "bf16": BFloat16}
ELEMENTS = {"e4m3": DType.MXFP8_E4M3, "e5m2": DType.MXFP8_E5M2, "e2m1": DType.MXFP4}
CODES, SCALES = 131072, 204800
BATCH = 2048
ALL = np.arange(1 << 16, dtype=np.uint16)

both_rules = pytest.mark.parametrize("rule", ["floor", "nv"])
halves = pytest.mark.parametrize("source", ["fp16", "bf16"])
elements = pytest.mark.parametrize("element", ELEMENTS)


def on_machine(
    bench: Any, source: str, element: str, rule: str, codes: Array
) -> tuple[Array, Array]:
    """Return codes, one a byte, and scales of rows of 32 quantised on the machine."""
    rows, pitch = len(codes), codes.shape[1] * codes.itemsize // 32
    machine, _, found = bench.apply(
        f"v_quant_mx ub[{CODES}], ub[0], ub[{SCALES}], type={source}, element={element}, rule={rule}, "
        f"rows={rows}, cols=32, dst_pitch=1, src_pitch={pitch}, scale_pitch=0",
        preset={Space.UB: np.ascontiguousarray(codes).view(np.uint8).reshape(-1)},
        core=CoreKind.AIV,
    )
    assert not found
    memory = machine.local.view(Space.UB)
    made = memory[CODES : CODES + rows * 32].reshape(rows, 32)
    if element == "e2m1":
        made = np.stack((made[:, :16] & 0xF, made[:, :16] >> 4), axis=-1).reshape(rows, 32)
    return made, memory[SCALES : SCALES + rows]


def in_numpy(source: str, element: str, rule: str, codes: Array) -> tuple[Array, Array]:
    """Return what the plain quantiser makes of the same rows."""
    made, scales = reference_quantize.quantize_groups(
        codec.decode(codes, SOURCES[source]),
        block_format_of(ELEMENTS[element]),
        rule=ScaleRule(rule),
        infinity=InfinityPolicy.NAN,
    )
    return made, scales.reshape(-1)


def compare(bench: Any, source: str, element: str, rule: str, codes: Array) -> None:
    found = on_machine(bench, source, element, rule, codes)
    for mine, wanted in zip(found, in_numpy(source, element, rule, codes), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@both_rules
@elements
@halves
def test_every_code_beside_its_neighbours_and_beside_others(
    bench: Any, rng: np.random.Generator, source: str, element: str, rule: str
) -> None:
    compare(bench, source, element, rule, ALL.reshape(-1, 32))
    compare(bench, source, element, rule, rng.permutation(ALL).reshape(-1, 32))


@both_rules
@elements
@halves
def test_every_code_as_the_largest_of_its_group(
    bench: Any, rng: np.random.Generator, source: str, element: str, rule: str
) -> None:
    for first in range(0, ALL.size, BATCH):
        top = ALL[first : first + BATCH]
        share = rng.random((BATCH, 32))
        groups = ((top & 0x7FFF)[:, None] * share).astype(np.uint16)
        # Most others lie a few binades below, as in life; a few lie anywhere below.
        near = (top & 0x7FFF)[:, None] - rng.integers(0, 1 << 12, (BATCH, 32))
        groups = np.where((share < 0.8) & (near > 0), near, groups).astype(np.uint16)
        groups |= rng.integers(0, 2, (BATCH, 32)).astype(np.uint16) << np.uint16(15)
        groups[np.arange(BATCH), rng.integers(0, 32, BATCH)] = top
        compare(bench, source, element, rule, groups)


@both_rules
@pytest.mark.parametrize("element", ["e4m3", "e5m2"])
@given(
    patterns=st.lists(st.integers(0, (1 << 32) - 1), min_size=32, max_size=32),
    binades=st.integers(0, 254),
    spread=st.integers(1, 40),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_float32_is_quantised_the_same_way(
    bench: Any, element: str, rule: str, patterns: list[int], binades: int, spread: int
) -> None:
    drawn = np.array(patterns, np.uint32)
    field = np.clip(binades - (drawn >> 23) % spread, 0, 254).astype(np.uint32)
    gathered = (drawn & np.uint32(0x807FFFFF)) | field << np.uint32(23)
    special = drawn.copy()
    special[1:] = gathered[1:]
    compare(bench, "fp32", element, rule, np.stack([drawn, gathered, special]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 2.0**-126])
@both_rules
@pytest.mark.parametrize(("source", "element"), [("fp32", "e4m3"), ("bf16", "e2m1")])
def test_a_special_value_alone_and_among_others(
    bench: Any, source: str, element: str, rule: str, value: float
) -> None:
    rows = np.zeros((4, 32), np.float32)
    rows[1, 3], rows[2], rows[3] = value, value, np.linspace(-3, 3, 32)
    rows[3, 31] = value
    if source == "fp32":
        compare(bench, source, element, rule, rows.view(np.uint32))
    else:
        compare(bench, source, element, rule, rows.astype(ml_dtypes.bfloat16).view(np.uint16))


@both_rules
@halves
def test_columns_are_quantised_as_rows_of_the_transposed(
    bench: Any, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, source: str, rule: str
) -> None:
    codes = rng.permutation(ALL)[: 96 * 64].reshape(96, 64)
    machine, _, found = bench.apply(
        f"v_transpose ub[32768], ub[0], type={source}, rows=96, cols=64, dst_pitch=6, src_pitch=4\n"
        f"v_quant_mx ub[65536], ub[32768], ub[{SCALES}], type={source}, element=e4m3, rule={rule}, "
        "rows=64, cols=96, dst_pitch=3, src_pitch=6, scale_pitch=1",
        preset={Space.UB: codes.view(np.uint8).reshape(-1)},
        core=CoreKind.AIV,
    )
    assert not found
    memory = machine.local.view(Space.UB)
    made = memory[65536 : 65536 + 64 * 96].reshape(64, 96).T
    scales = memory[SCALES : SCALES + 64 * 32].reshape(64, 32)[:, :3].T
    x = codec.decode(codes, SOURCES[source])
    for compiled_from in (0, 1 << 60):
        monkeypatch.setattr(quantization, "COMPILED_FROM", compiled_from)
        wanted = quantization.quantize(x, DType.MXFP8_E4M3, axis=0, rule=rule)
        np.testing.assert_array_equal(made, wanted.elements)
        np.testing.assert_array_equal(scales, wanted.scales)
