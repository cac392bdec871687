import pytest

from scalebox.codegen.isa.row import (
    Field,
    Row,
    Rule,
    Step,
    addr,
    at_most,
    enum,
    imm,
    reg,
    simm,
    view,
)
from scalebox.codegen.isa.vocabulary import FieldKind, Flow, MadInit, Pipe, Space, TimingClass


def row(*fields: Field, mnemonic: str = "probe", opcode: int = 1, doc: str = "Probes.") -> Row:
    return Row(mnemonic, opcode, Pipe.S, TimingClass.SCALAR, doc, fields)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ((imm("a", 4, 8, ""),), "bits overlap with another field"),
        ((imm("a", 8, 8, ""), imm("b", 15, 2, "")), "bits overlap with another field"),
        ((imm("a", 120, 9, ""),), "ends beyond bit 127"),
        ((imm("a", 60, 8, ""),), "crosses bit 64"),
        ((imm("a", 8, 8, ""), imm("a", 16, 8, "")), "a field name stands twice"),
        ((imm("a", 8, 4, "", most=16),), "range exceeds the bits"),
        ((simm("a", 8, 4, "", least=-9),), "range exceeds the bits"),
        ((enum("a", 8, 1, MadInit, ""),), "enum exceeds the bits"),
        ((Field("a", FieldKind.ENUM, 8, 4, ""),), "enum and kind"),
        ((Field("a", FieldKind.ADDR, 8, 20, ""),), "space and kind"),
        ((Field("a", FieldKind.ADDR, 8, 20, "", space=Space.GM),), "GM is reached through views"),
        ((Field("a", FieldKind.VIEW, 8, 10, ""),), "rank and kind"),
        ((Field("a", FieldKind.IMM, 8, 10, "", written=True),), "only registers are results"),
        ((Field("a", FieldKind.REG, 8, 6, ""),), "there are 32 registers"),
        ((Field("a", FieldKind.TARGET, 64, 32, ""),), "a branch has one target"),
    ],
)
def test_a_malformed_row_is_refused_when_it_is_made(fields: tuple[Field, ...], reason: str):
    with pytest.raises(AssertionError, match=reason):
        row(*fields)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"opcode": 256}, "opcode 256 out of range"),
        ({"mnemonic": "Probe"}, "lower case"),
        ({"mnemonic": "pro be"}, "one word"),
        ({"doc": "probes"}, "made of sentences"),
    ],
)
def test_a_malformed_heading_is_refused_when_it_is_made(changed: dict[str, int], reason: str):
    with pytest.raises(AssertionError, match=reason):
        row(**changed)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("timing", "step"), [(TimingClass.VECTOR, None), (TimingClass.SCALAR, Step(1, 1, 1))]
)
def test_steps_are_what_vector_instructions_have(timing: TimingClass, step: Step | None):
    with pytest.raises(AssertionError, match="vector instructions have steps"):
        Row("probe", 1, Pipe.V, timing, "Probes.", step=step)


def test_a_branch_without_a_target_is_refused():
    with pytest.raises(AssertionError, match="a branch has one target"):
        Row("probe", 1, Pipe.S, TimingClass.BRANCH, "Probes.", flow=Flow.BRANCH)


def test_the_queue_is_that_of_the_named_pipe_and_all_means_the_scalar_unit():
    barrier = Row(
        "probe",
        1,
        Pipe.S,
        TimingClass.BARRIER,
        "Probes.",
        (enum("pipe", 8, 4, Pipe, ""),),
        pipe_field="pipe",
    )
    assert barrier.queue((Pipe.MTE3,)) is Pipe.MTE3
    assert barrier.queue((Pipe.ALL,)) is Pipe.S


def test_a_complaint_names_row_field_range_and_value():
    probe = row(
        reg("xa", 8, ""),
        imm("rows", 13, 8, "", least=1, multiple=16),
        enum("init", 21, 2, MadInit, ""),
        addr("a", 64, Space.L0A, ""),
        simm("step", 82, 8, ""),
        view("view", 92, 2, ""),
    )
    legal = (0, 16, 0, 512, -128, 1023)
    assert probe.complaint(legal) is None
    expected = {
        (0, 32): "xa must be 0 to 31, not 32",
        (1, 0): "rows must be 1 to 255, not 0",
        (1, 24): "rows must be a multiple of 16, not 24",
        (2, 3): "init must be one of zero (0), acc (1), bias (2), not 3",
        (3, 256): "a must be a multiple of 512, not 256",
        (3, -512): "a must be 0 to 262143, not -512",
        (4, 128): "step must be -128 to 127, not 128",
        (5, 1024): "view must be 0 to 1023, not 1024",
    }
    for (index, value), clause in expected.items():
        values = (*legal[:index], value, *legal[index + 1 :])
        assert probe.complaint(values) == f"In probe, {clause}."


def test_rules_between_fields_are_checked_after_the_fields():
    probe = Row(
        "probe",
        1,
        Pipe.S,
        TimingClass.SCALAR,
        "Probes.",
        (imm("rows", 8, 8, ""), imm("pitch", 16, 8, "")),
        rules=(at_most("rows", "pitch"), Rule("never", lambda _: None)),
    )
    assert probe.complaint((4, 4)) is None
    assert probe.complaint((5, 4)) == "In probe, rows must be at most pitch (4), not 5."
