"""Coverage is complete when every class that was named came up, and not before."""

from pathlib import Path

import pytest

from scalebox.rtl.cosim.bench import stall_coverage
from scalebox.rtl.cosim.coverage import Coverage


def test_what_never_came_up_is_named() -> None:
    coverage = Coverage({"code": range(3), "pair": [("a", "b"), ("b", "a")]})
    assert coverage.percent == 0
    for which in (0, 2, 2):
        coverage.hit("code", which)
    coverage.hit("pair", ("b", "a"))
    assert coverage.missing == ["code: 1", "pair: ('a', 'b')"]
    assert coverage.percent == 60
    coverage.hit("code", 1)
    coverage.hit("pair", ("a", "b"))
    assert (coverage.missing, coverage.percent) == ([], 100)


def test_a_class_that_was_not_named_is_refused() -> None:
    coverage = Coverage({"code": range(3)})
    with pytest.raises(AssertionError, match="code must be one of the classes"):
        coverage.hit("code", 3)


def test_counts_survive_a_file(tmp_path: Path) -> None:
    coverage = Coverage({"code": range(3)})
    coverage.hit("code", 1)
    coverage.save(tmp_path / "counts.json")
    assert Coverage.load(tmp_path / "counts.json").missing == ["code: 0", "code: 2"]


def test_classes_that_cannot_come_up_are_not_asked_for() -> None:
    whole, narrow = stall_coverage(32), stall_coverage(8)
    assert set(narrow["reset"]) - set(whole["reset"]) == {"in mid-box"}
    assert len(whole["moment"]) == 27 - 1
    assert (len(whole["waits"]), len(whole["gaps"])) == (6 * 3, 6 * 2 - 1)
