"""Single elements that are read from tiles and written into them, without the scalar unit."""

import numpy as np
import pytest

from scalebox.ir.errors import IRValueError

from .counted_tiles import assert_same_codes, program, run
from .vector_kernels import agreed, compiled, kernel


def test_an_element_goes_into_ops_without_the_scalar_unit() -> None:
    made = program(
        [
            "s = pl.read(t, [3, 17])",
            "u = pl.mul(t, s)",
            "v = pl.sub(u, pl.read(t, [0, 1]))",
            "out = pl.store(v, [0, 0], out)",
        ],
        [32, 64],
    )
    x = (np.arange(2048).reshape(32, 64) / 64).astype(np.float32)
    found = agreed(made, {"x": x, "y": x})
    np.testing.assert_array_equal(found, x * x[3, 17] - x[0, 1])


def test_an_element_that_was_read_keeps_its_value() -> None:
    made = program(
        [
            "s = pl.read(t, [3, 17])",
            "u = pl.write(t, [3, 17], 0.0)",
            "v = pl.add(u, s)",
            "out = pl.store(v, [0, 0], out)",
        ],
        [32, 64],
    )
    x = (np.arange(2048).reshape(32, 64) / 64).astype(np.float32)
    found = agreed(made, {"x": x, "y": x})
    wanted = x.copy()
    wanted[3, 17] = 0
    np.testing.assert_array_equal(found, wanted + x[3, 17])


@pytest.mark.parametrize("valid", ["", ", [20, 50]"])
def test_an_element_is_compared_and_chosen_and_fills(valid: str) -> None:
    made = kernel(
        {"x": "[[32, 64], pl.FP32]"},
        [
            f"t = pl.load(x, [0, 0], [32, 64]{valid}, target_memory=pl.Mem.Vec)",
            "m = pl.cmp(t, pl.read(t, [1, 2]), cmp_type=2)",
            "u = pl.sel(m, t, pl.read(t, [0, 3]))",
            "out = pl.store(u, [0, 0], out)",
        ],
        "[[32, 64], pl.FP32]",
    )
    x = np.random.default_rng(2).standard_normal((32, 64)).astype(np.float32)
    found = agreed(made, {"x": x})
    rows, cols = (20, 50) if valid else (32, 64)
    part = x[:rows, :cols]
    np.testing.assert_array_equal(found[:rows, :cols], np.where(part < x[1, 2], part, x[0, 3]))


@pytest.mark.parametrize("kind", ["FP32", "BF16", "INT8", "INT32"])
def test_elements_are_written_anywhere(kind: str) -> None:
    made = program(
        [
            "u = pl.write(t, [3, 17], 5)"
            if kind.startswith("INT")
            else "u = pl.write(t, [3, 17], 5.0)",
            "v = pl.write(u, [0, 0], pl.read(t, [31, 63]))",
            "for i in pl.range(0, 20):",
            "    v = pl.write(v, [i + 7, i * 3], pl.read(v, [i, 1]))",
            "out = pl.store(v, [0, 0], out)",
        ],
        [32, 64],
        kind=kind,
    )
    found, x = run(made, kind)
    wanted = x.copy()
    wanted[3, 17] = 5
    wanted[0, 0] = x[31, 63]
    for i in range(20):
        wanted[i + 7, i * 3] = wanted[i, 1]
    assert_same_codes(found, wanted)


@pytest.mark.parametrize(
    "lines",
    [
        ["if pl.read(t, [0, 0]) > 1.0:", "    out = pl.store(t, [0, 0], out)"],
        ["s = pl.read(t, [0, 0]) * 2.0", "out = pl.store(pl.mul(t, s), [0, 0], out)"],
    ],
)
def test_what_is_read_steers_no_scalars(lines: list[str]) -> None:
    with pytest.raises(IRValueError) as caught:
        compiled(program(lines, [32, 64]))
    assert "must go into an op on tiles or into pl.write as it is" in caught.value.message
    assert caught.value.hint is not None
    assert "pl.slice(t, [1, 1], [i, j])" in caught.value.hint


@pytest.mark.parametrize(
    ("read", "source"), [("x[0, 1]", "tensor"), ("pl.read(t, [0, 1])", "tile"), ("t[0, 1]", "tile")]
)
def test_what_is_read_and_steers_a_loop_is_told_with_its_source(read: str, source: str) -> None:
    lines = [f"n = {read}", "for i in pl.range(n):", "    out = pl.store(t, [0, 0], out)"]
    with pytest.raises(IRValueError) as caught:
        compiled(program(lines, [32, 64], kind="INT32"))
    assert f"A value that is read from a {source} (n) must go into" in caught.value.message
    assert ("pl.Scalar" in (caught.value.hint or "")) is (source == "tensor")
