"""Hints for a word that is none of the known ones."""

import pytest

from scalebox.ir.suggest import near
from scalebox.ir.target import specs

FIELDS = ("gm_port_bytes_per_cycle", "l2_hit_cycles", "l2_miss_cycles", "flag_cycles", "cores")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("gm_port", "valid here: gm_port_bytes_per_cycle"),
        ("port_bytes", "valid here: gm_port_bytes_per_cycle"),
        ("l2_mis_cycles", "valid here: l2_miss_cycles, l2_hit_cycles, flag_cycles"),
        ("core", "valid here: cores"),
        ("l2_", "valid here: l2_hit_cycles, l2_miss_cycles"),
        ("l2", f"valid here: {', '.join(FIELDS)}"),
        ("zzz", f"valid here: {', '.join(FIELDS)}"),
        ("", f"valid here: {', '.join(FIELDS)}"),
        (7, f"valid here: {', '.join(FIELDS)}"),
    ],
)
def test_names_that_begin_with_a_word_or_hold_it_are_near(word: object, hint: str) -> None:
    assert near(word, FIELDS) == hint


def test_a_shorter_name_that_begins_so_comes_first() -> None:
    hint = near("matm", ["matmul_mx_acc", "matmul", "matmul_mx", "load"], all_of_them=True)
    assert hint == "did you mean matmul? valid here: matmul, matmul_mx, matmul_mx_acc, load"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("gm_port", "the nearest is gm_port_bytes_per_cycle; docs/machine.md lists all"),
        ("zzzzzz", "no name is near; docs/machine.md lists all"),
    ],
)
def test_a_long_list_is_told_by_its_page(word: str, hint: str) -> None:
    assert near(word, specs(), listed_in="docs/machine.md") == hint
