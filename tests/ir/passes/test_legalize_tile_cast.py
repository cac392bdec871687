"""LegalizeTileCast: chains of the machine's conversions, the shortest that lose nothing."""

from itertools import permutations

import numpy as np
import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.cast_mode import CastMode
from scalebox.ir.core import Program
from scalebox.ir.dtypes import (
    BFloat16,
    DType,
    Float16,
    Int16,
    Int64,
    SimpleDType,
    UInt8,
    UInt16,
    UInt32,
)
from scalebox.ir.dtypes.formats import FLOAT_FORMATS
from scalebox.ir.errors import IRValueError
from scalebox.ir.numerics.cast import cast_codes
from scalebox.ir.passes import PassContext, legalize_tile_cast
from scalebox.ir.passes.cast_chains import any_chain, cast_chain, lossy_step
from scalebox.ir.passes.legalize_tile_cast import native_casts
from scalebox.ir.placement import code_type
from scalebox.ir.target import load_target

from .kernels import before, calls_of

A5 = load_target("a5")
CASTS = native_casts(A5)
FP4, FP8, FP32, INT8, INT32 = DType.E2M1, DType.E4M3, DType.Float32, DType.Int8, DType.Int32
DTYPES = (
    FP32, BFloat16, Float16, FP4, FP8, DType.E5M2, INT8, UInt8, Int16, UInt16, INT32, UInt32, Int64,
)  # fmt: skip

#: The published table of conversions, HF8 left out.
TABLE = {
    FP32: {BFloat16, Float16, FP8, DType.E5M2, Int16, INT32, Int64},
    BFloat16: {Float16, FP32, FP4, INT32},
    Float16: {FP32, Int16, INT32, INT8, UInt8},
    FP4: {BFloat16},
    FP8: {FP32},
    DType.E5M2: {FP32},
    Int16: {Float16, FP32, INT32, UInt32, UInt8},
    INT32: {FP32, Int16, Int64, UInt16, UInt8},
    Int64: {FP32, INT32},
    INT8: {Float16, Int16, INT32},
    UInt32: {Int16, UInt16, UInt8},
    UInt8: {Float16, UInt16},
}


def test_the_machine_file_has_the_published_table() -> None:
    assert {source: set(targets) for source, targets in CASTS.items()} == TABLE
    assert A5.provenance["vector_casts"].status.value == "published"


def names(source: SimpleDType, target: SimpleDType, mode: str = "round") -> list[str] | None:
    chain = cast_chain(CASTS, source, target, CastMode.of(mode))
    return None if chain is None else [f"{step.target.name}:{step.mode}" for step in chain]


def test_fp4_reaches_fp8_in_three_steps() -> None:
    assert names(FP4, FP8) == ["BFloat16:round", "Float32:round", "E4M3:round"]


def test_a_step_that_loses_bits_rounds_to_odd_or_in_the_direction_of_the_last() -> None:
    assert names(FP32, FP4, "rint") == ["BFloat16:odd", "E2M1:rint"]
    assert names(FP32, FP4, "floor") == ["BFloat16:floor", "E2M1:floor"]
    assert names(FP32, INT8, "none") == ["Float16:odd", "Int8:none"]


def test_between_integers_nothing_is_rounded_twice() -> None:
    assert names(FP32, UInt8, "rint") == ["Int32:rint", "UInt8:rint"]


def test_of_two_chains_the_one_that_keeps_the_width_or_goes_by_a_float_is_taken() -> None:
    assert names(FP32, UInt16) == ["Int32:round", "UInt16:round"]  # 32 bits, not by way of 16
    assert names(INT8, FP32) == ["Float16:round", "Float32:round"]  # not by way of Int16 or Int32


def test_a_chain_that_would_lose_values_is_none() -> None:
    assert names(UInt32, FP32) is None
    assert any_chain(CASTS, UInt32, FP32) == (UInt32, Int16, FP32)
    assert lossy_step((UInt32, Int16, FP32)) is Int16
    assert any_chain(CASTS, UInt16, FP32) is None


def _codes(source: SimpleDType, target: SimpleDType) -> np.ndarray:
    if source.bits <= 16:
        codes = np.arange(1 << source.bits, dtype=np.uint64)
    else:
        rng = np.random.default_rng(source.bits)
        codes = rng.integers(0, 1 << min(source.bits, 63), 20_000).astype(np.uint64)
        codes >>= (rng.integers(0, source.bits, 20_000) * rng.integers(0, 2, 20_000)).astype(
            np.uint64
        )
    form = FLOAT_FORMATS.get(source)
    if target is FP4 and form is not None and form.has_nan:
        magnitude = codes & np.uint64(form.magnitude_mask)
        last = form.max_code if form.infinity_code is None else form.infinity_code
        codes = codes[magnitude <= np.uint64(last)]
    return codes.astype(code_type(source))


@pytest.mark.parametrize(
    ("source", "target"), [*permutations(DTYPES, 2)], ids=lambda dtype: dtype.name
)
def test_a_chain_gives_what_one_direct_conversion_gives(
    source: SimpleDType, target: SimpleDType
) -> None:
    codes = _codes(source, target)
    for mode in CastMode:
        chain = cast_chain(CASTS, source, target, mode)
        if chain is None:
            return
        made, dtype = codes, source
        for step in chain:
            assert step.target in CASTS[dtype]
            made, dtype = cast_codes(made, dtype, step.target, step.mode), step.target
        assert (made == cast_codes(codes, source, target, mode)).all(), (mode, chain)
        shortest = any_chain(CASTS, source, target)
        assert shortest is not None
        assert len(chain) >= len(shortest) - 1


TEXT = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[16, 64], pl.{source}], b: pl.Out[pl.Tensor[[16, 64], pl.{target}]]):
        t = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        u = pl.cast(t, pl.{target}, mode="{mode}")
        b = pl.store(u, [0, 0], b)
        return b
"""


def kernel(source: str, target: str, mode: str = "round") -> Program:
    parsed = pl.parse(TEXT.format(source=source, target=target, mode=mode))
    assert isinstance(parsed, Program)
    return before(parsed, legalize_tile_cast)


class TestPass:
    def test_the_steps_have_names_of_their_own_and_the_spans_of_the_cast(self) -> None:
        made = kernel("FP4", "FP8E4M3FN")
        (old,) = calls_of(made, "tile.cast")
        done = legalize_tile_cast()(made)
        casts = calls_of(done, "tile.cast")
        assert [var.name_hint for var, _ in casts] == ["u_bfloat16", "u_float32", "u"]
        assert all(call.span == old[1].span for _, call in casts)
        assert casts[-1][0] is old[0]

    def test_a_cast_that_the_machine_has_is_left_alone(self) -> None:
        made = kernel("FP32", "FP8E4M3FN")
        assert legalize_tile_cast()(made) is made

    def test_a_second_run_changes_nothing(self) -> None:
        done = legalize_tile_cast()(kernel("FP4", "FP8E4M3FN"))
        assert legalize_tile_cast()(done) is done

    def test_the_table_is_that_of_the_machine_in_the_context(self) -> None:
        other = A5.with_settings({"vector_casts": [["E2M1", "Float16"], ["Float16", "E4M3"]]})
        with PassContext(target=other):
            done = legalize_tile_cast()(kernel("FP4", "FP8E4M3FN"))
        assert [call.kwargs["target_type"] for _, call in calls_of(done, "tile.cast")] == [
            Float16,
            FP8,
        ]

    @pytest.mark.parametrize("mode", ["rint", "odd", "ceil"])
    def test_the_numbers_stay(self, mode: str) -> None:
        made = kernel("FP32", "FP4", mode)
        rng = np.random.default_rng(7)
        x = (rng.standard_normal((16, 64)) * 3).astype(np.float32)
        x[0, :8] = [0.25, 0.75, 1.25, 5, 7, -0.25, 0.2500001, np.inf]
        golden = scalebox.interpret(made, {"a": x})["b"]
        found = scalebox.interpret(legalize_tile_cast()(made), {"a": x})["b"]
        assert (found.view(np.uint8) == golden.view(np.uint8)).all()

    def test_a_chain_that_would_lose_values_is_named(self) -> None:
        with pytest.raises(IRValueError) as caught:
            legalize_tile_cast()(kernel("UINT32", "FP32"))
        assert caught.value.message == (
            "A tile of UInt32 must be cast to a dtype that a5 can make of it without loss, not to "
            "Float32: the shortest chain is UInt32 to Int16 to Float32, and Int16 does not hold what "
            "Float32 does"
        )
        assert caught.value.hint == "if the loss is meant, write these casts one by one"
        assert caught.value.span is not None

    def test_where_no_chain_leads_what_does_is_told(self) -> None:
        with pytest.raises(IRValueError) as caught:
            legalize_tile_cast()(kernel("UINT16", "FP32"))
        assert caught.value.message == (
            "A tile of UInt16 must be cast to a dtype that a5 can make of it, not to Float32: no chain "
            "of its conversions leads there"
        )
        assert caught.value.hint == "UInt16 converts to no dtype"
