"""What a kernel does not fill: an output, of which golden cannot tell, and a tensor of its own."""

import json
from pathlib import Path

import numpy as np
import pytest

import scalebox
from scalebox import pl
from scalebox.app.cli import main
from scalebox.ir.core import Program
from scalebox.ir.errors import SimulationFault

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


def half_written(result: str) -> Program:
    """Return a kernel that writes half of a tensor of its own and reads all of it."""
    made = pl.parse(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 32], pl.FP32]):
        half = pl.create_tensor([16, 32], dtype=pl.FP32)
        half[0:8, :] = x[0:8, :]
        y = pl.add(half, x)
        return {result}
""")
    assert isinstance(made, Program)
    return made


def test_a_created_tensor_holds_nothing_for_the_machine_and_zeros_for_the_interpreter() -> None:
    program = half_written("y")
    x = np.arange(512, dtype=np.float32).reshape(16, 32)
    wanted = np.concatenate([2 * x[:8], x[8:]])
    np.testing.assert_array_equal(scalebox.interpret(program, {"x": x})["y"], wanted)
    with pytest.raises(
        SimulationFault, match="only what was written, not byte 2048 of UB"
    ) as caught:
        scalebox.run(program, {"x": x}, timing=False)
    assert caught.value.hint == (
        "what pl.create_tensor makes holds nothing until it is written; scalebox.interpret takes zeros "
        "there"
    )


def test_a_created_tensor_that_is_returned_is_an_output_and_0_for_both() -> None:
    program = half_written("half, y")
    x = np.arange(512, dtype=np.float32).reshape(16, 32)
    for found in (
        scalebox.interpret(program, {"x": x}),
        scalebox.run(program, {"x": x}, timing=False).outputs,
    ):
        np.testing.assert_array_equal(found["half"][:8], x[:8])
        assert not found["half"][8:].any()
        np.testing.assert_array_equal(found["y"], found["half"] + x)
