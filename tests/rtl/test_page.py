"""The page about the RTL tells of every word and every key that somebody else has to read."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scalebox.app.commands.rtl import rtl_files
from scalebox.rtl.emit import UNITS, Choice

VECTORS = [("scale_decode", Choice(combined=True)), *((unit, Choice()) for unit in UNITS)]


@pytest.fixture(scope="module")
def code(root: Path) -> frozenset[str]:
    """All that the page sets in type for code."""
    return frozenset(re.findall(r"`([^`\n]+)`", (root / "docs" / "rtl.md").read_text()))


@pytest.fixture(scope="module", params=VECTORS, ids=lambda each: f"{each[0]}-{each[1].combined:d}")
def told(request: pytest.FixtureRequest) -> Any:
    unit, choice = request.param
    return json.loads(rtl_files(unit, choice)[f"{unit}_vectors.json"])


def keys(told: Any) -> Iterator[str]:
    """Yield the keys of a file of vectors, its ports and its cases."""
    yield from told
    for port in told["ports"]:
        yield from port
        for field in port["fields"]:
            yield from field
    for case in told["cases"]:
        yield from case
        yield from case.get("matrices", {"a": None})


def test_every_field_of_every_port_is_explained(code: frozenset[str], told: Any) -> None:
    for port in told["ports"]:
        names = {field["name"] for field in port["fields"]} - {""}
        assert {port["name"], *names} <= code


def test_every_key_of_the_vectors_is_explained(code: frozenset[str], told: Any) -> None:
    assert {*keys(told)} - {"a_scales", "b_scales"} <= code


def test_the_latency_of_a_unit_is_the_one_that_the_page_tells(root: Path, told: Any) -> None:
    cycles = told["latency_cycles"]
    says = {
        "scale_decode": f"start to first record: 3 + beats of a box ({cycles} with 32-byte beats)",
        "dot": f"last step to sum: {cycles} |",
        "cube": f"cycles beside its steps: {cycles} with 32-byte beats",
        "scale_pair": "none: it has no clock" if cycles == 0 else "a latency",
    }
    assert says[told["unit"]] in (root / "docs" / "rtl.md").read_text()
