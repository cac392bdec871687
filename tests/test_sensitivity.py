"""The table of what the published kernels' times depend on: what is changed, and how it is told."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import scalebox
from scalebox.ir.language.text import load_file
from scalebox.ir.target import load_target, specs
from scalebox.ir.target_spec import Unit

A5 = load_target("a5")


@pytest.fixture
def sensitivity(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(root / "benchmarks"), *sys.path])
    for name in ("rows", "published", "sensitivity"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("sensitivity")


def test_every_number_of_the_machine_is_changed_to_a_legal_one(sensitivity: ModuleType) -> None:
    names = [name for name, _, _ in sensitivity.numbers(A5)]
    assert names == [name for name, rule in specs().items() if not rule.type.is_pairs]
    for name, rule, value in sensitivity.numbers(A5):
        less, more = (sensitivity.changed(rule, value, factor) for factor in (0.8, 1.2))
        assert rule.checked(name, less) == less
        assert rule.checked(name, more) == more
        assert less < value or value == rule.least
        assert more > value or value == rule.most


@pytest.mark.parametrize(
    ("name", "value", "less", "more"),
    [
        ("l2_hit_cycles", 200, 160, 240),
        ("drain_row_cycles", 4.5, 3.6, 5.4),
        ("scalar_cycles", 1, 1, 2),
        ("vector_load_ports", 2, 1, 3),
        ("l1_bytes", 524_288, 262_144, 1_048_576),
        ("ub_bytes", 245_760, 196_608, 294_912),
        ("scale_beat_bytes", 32, 16, 64),
        ("scale_beat_bytes", 64, 32, 64),
        ("mad_8bit_k_elements", 32, 16, 64),
    ],
)
def test_a_number_changes_by_a_fifth_or_by_what_its_kind_has_for_that(
    sensitivity: ModuleType, name: str, value: float, less: float, more: float
) -> None:
    rule = specs()[name]
    found = [sensitivity.changed(rule, value, factor) for factor in (0.8, 1.2)]
    assert found == pytest.approx([less, more])
    assert rule.unit is not Unit.COUNT or all(isinstance(each, int) for each in found)


def test_effects_are_told_in_a_table_and_their_absence_in_a_sentence(
    sensitivity: ModuleType,
) -> None:
    effects = [
        sensitivity.Effect("gm_row_cycles", 1.7, -0.061, 0.0584),
        sensitivity.Effect("l1_bytes", 524288, None, 0.0),
        sensitivity.Effect("scale_buffered_boxes", 2, 0.5, -0.0001),
        sensitivity.Effect("vector_add_cycles", 7, 0.0, 0.0001),
    ]
    assert sensitivity.markdown(effects) == (
        "| field | value | a fifth less | a fifth more |\n"
        "|---|---|---|---|\n"
        "| `gm_row_cycles` | 1.7 | -6.1% | +5.8% |\n"
        "| `l1_bytes` | 524,288 | refused with 262,144 | +0.0% with 1,048,576 |\n"
        "| `scale_buffered_boxes` | 2 | +50.0% with 1 | +0.0% with 3 |\n"
        "\n"
        "Less than 0.05% either way: `vector_add_cycles`.\n"
    )


def test_the_page_has_one_place_for_the_table(sensitivity: ModuleType) -> None:
    text = sensitivity.PAGE.read_text(encoding="utf-8")
    assert len(sensitivity.BLOCK.findall(text)) == 1
    assert sensitivity.BLOCK.sub("", text).count("sensitivity -->") == 2


def test_what_a_compiler_asks_for_is_known(sensitivity: ModuleType, root: Path) -> None:
    program = load_file(root / "examples" / "mx_matmul.py").program
    watched = sensitivity.Watched.of(A5)
    assert watched.asked == set()
    executable = scalebox.compile(program, machine=watched)
    assert {"l1_bytes", "l0a_bytes"} <= watched.asked
    assert not {"flag_cycles", "l2_bytes", "clock_hz", "vector_add_cycles"} & watched.asked
    usual = scalebox.compile(program)
    assert executable.disassemble() == usual.disassemble()
    other = {
        name: sensitivity.changed(rule, value, 1.2)
        for name, rule, value in sensitivity.numbers(A5)
        if name not in watched.asked
    }
    assert len(other) > 10
    changed = scalebox.compile(program, machine=A5.with_settings(other))
    assert changed.kernels == usual.kernels
