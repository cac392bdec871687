"""What looks on while passes run, and what it says when a pass goes wrong."""

from collections.abc import Callable

import pytest

from scalebox.ir.core import Program
from scalebox.ir.errors import VerificationError
from scalebox.ir.passes import (
    CallbackInstrument,
    PassContext,
    RoundTripInstrument,
    StagesInstrument,
    TimingInstrument,
    create_function_pass,
    default_pipeline,
    make_roundtrip_instrument,
    stage_diff,
)
from scalebox.ir.passes.base import Pass

from .kernels import OPERANDS, kernel
from .parts import assign, function, program, scalar


def sums() -> Program:
    return kernel(OPERANDS + "x = pl.matmul_mx_acc(x, l, p, r, q)\n")


def test_stages_are_the_source_and_the_program_after_every_pass() -> None:
    made, stages = sums(), StagesInstrument()
    with PassContext([stages]):
        last = default_pipeline()(made)
    assert [each.name for each in stages.stages] == [
        "source",
        *default_pipeline().get_pass_names(),
    ]
    assert stages.stages[0].program is made
    assert stages.stages[-1].program is last


def test_the_last_instrument_stands_closest_to_the_pass() -> None:
    heard: list[str] = []

    def listening(name: str) -> CallbackInstrument:
        def hear(when: str) -> Callable[[Pass, Program], None]:
            return lambda _pass, _program: heard.append(f"{name} {when}")

        return CallbackInstrument(hear("before"), hear("after"))

    with PassContext([listening("far"), listening("near")]):
        create_function_pass(lambda each: each, "Nothing")(sums())
    assert heard == ["far before", "near before", "near after", "far after"]


def test_timings_say_which_passes_had_something_to_do() -> None:
    timing = TimingInstrument()
    with PassContext([timing]):
        default_pipeline()(sums())
    assert [each.name for each in timing.timings] == default_pipeline().get_pass_names()
    changed = {each.name: each.changed for each in timing.timings}
    assert changed["BlockMxScaleTensorViews"]
    assert not changed["LowerPipelineLoops"]
    assert all(each.seconds >= 0 for each in timing.timings)


def test_every_pass_of_a_kernel_survives_the_round_trip() -> None:
    with PassContext([make_roundtrip_instrument()]):
        default_pipeline()(sums())


def test_a_program_that_reads_back_differently_names_the_pass() -> None:
    made = program(function("k", [scalar("i")], assign("x", scalar("i"))))
    with PassContext([RoundTripInstrument()]), pytest.raises(VerificationError) as caught:
        create_function_pass(lambda each: each, "Nothing")(made)
    assert str(caught.value).startswith(
        "[RoundtripInstrument] Printing and parsing failed after pass 'Nothing': "
    )


def test_the_diff_of_two_stages_has_only_what_changed() -> None:
    stages = StagesInstrument()
    with PassContext([stages]):
        default_pipeline()(sums())
    named = {each.name: each for each in stages.stages}
    text = stage_diff(named["BlockNzTensorViews"], named["BlockMxScaleTensorViews"])
    assert text.startswith("--- BlockNzTensorViews\n+++ BlockMxScaleTensorViews\n@@")
    stamps = '{"nz_tensor_views_blocked": True, "mx_tensor_views_blocked": True}'
    assert f"+        pl.func_attr({stamps})\n" in text
    assert stage_diff(named["source"], named["source"]) == ""
