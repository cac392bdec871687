"""An output that a kernel does not fill: golden, from the same kernel, cannot tell."""

import json
from pathlib import Path

import numpy as np
import pytest

from scalebox.app.cli import main

TEXT = """
from scalebox.ir import language as pl

X = pl.Tensor[[64, 64], pl.FP32]


@pl.jit.incore
def kern(a: X, c: pl.Out[X]):
    for i in pl.range(0, {rows}, 16):
        part = pl.load(a, [i, 0], [16, {cols}])
        c = pl.store(pl.exp(part), [i, 0], c)
    return c
"""


@pytest.mark.parametrize(
    ("rows", "cols", "warnings"),
    [
        (64, 64, []),
        (32, 64, ["no store writes 2,048 of 4,096 elements of c, the first at [32, 0]"]),
        (64, 32, ["no store writes 2,048 of 4,096 elements of c, the first at [0, 32]"]),
        (
            0,
            64,
            [
                "no store writes anything into c, which stays 0",
                "golden 'c' is all zero, which proves nothing of how it was computed",
            ],
        ),
    ],
)
def test_what_no_store_reaches_is_said(
    rows: int,
    cols: int,
    warnings: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(TEXT.format(rows=rows, cols=cols))
    assert main(["run", "kernel.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == warnings


def test_an_output_that_is_given_holds_what_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(TEXT.format(rows=32, cols=64))
    np.savez("both.npz", a=np.ones((64, 64), np.float32), c=np.ones((64, 64), np.float32))
    assert main(["run", "kernel.py", "--inputs", "both.npz", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []
