"""Manners that no linter knows."""

import re
from pathlib import Path

import pytest

MOST_LINES = 450
# Places of one machine, notes that a reader of this repository does not have, and unfinished work.
UNWANTED = {
    "an absolute path": r"(?<![\w.})\]/:])/(?:home|mnt|opt|root|srv|tmp|work|Users)/\w",
    "a document that is not in this repository": r"\b(?:shared|facts)/|\b(?:design|style)\.md\b",
    "unfinished work": r"\b(?:TODO|FIXME)\b",
}


def test_no_source_file_is_too_long_to_read(root: Path, source_files: list[Path]) -> None:
    lengths = {path.relative_to(root): path.read_text().count("\n") for path in source_files}
    too_long = [f"{path}: {lines} lines" for path, lines in lengths.items() if lines > MOST_LINES]
    assert not too_long, "\n".join(too_long)


@pytest.mark.parametrize("what", UNWANTED)
def test_no_file_contains(what: str, root: Path, own_files: list[Path]) -> None:
    found: list[str] = []
    for path in own_files:
        if path == Path(__file__).resolve():
            continue
        lines = path.read_bytes().decode("utf-8", errors="replace").splitlines()
        found += [
            f"{path.relative_to(root)}:{number}: {line.strip()}"
            for number, line in enumerate(lines, start=1)
            if re.search(UNWANTED[what], line)
        ]
    assert not found, "\n".join(found)
