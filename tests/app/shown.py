"""What a command has printed."""

import json
from typing import Any

import pytest


def answer(shown: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the JSON on standard output, after a check that nothing else was said."""
    captured = shown.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)
