"""Copies of a pipelined body on the vector core: while one computes, the other one loads."""

import numpy as np

from .vector_kernels import agreed, instructions, kernel

ROWS, COLUMNS, STEP = 64, 1024, 8
SOURCE = f"[[{ROWS}, {COLUMNS}], pl.FP32]"
PROGRAM = kernel(
    {"x": SOURCE, "y": SOURCE},
    [
        f"for i in pl.pipeline(0, {ROWS}, {STEP}, stage=2):",
        f"    s = pl.add(pl.load(x, [i, 0], [{STEP}, {COLUMNS}]), pl.load(y, [i, 0], [{STEP}, {COLUMNS}]))",
        "    out = pl.store(pl.exp(s), [i, 0], out)",
    ],
    SOURCE,
)
"""Eight buffers of 32 KiB, of which UB holds seven: two must share a place."""


def test_where_ub_is_too_small_a_copy_shares_places_with_itself_only() -> None:
    adds, exps = instructions(PROGRAM, "v_binary"), instructions(PROGRAM, "v_unary")
    assert len(adds) == len(exps) == 2
    one, other = (
        {add.fields["a"], add.fields["b"], add.fields["dst"], exp.fields["dst"]}
        for add, exp in zip(adds, exps, strict=True)
    )
    assert not one & other
    assert len(one | other) == 7


def test_and_its_numbers_are_right() -> None:
    x, y = np.random.default_rng(3).standard_normal((2, ROWS, COLUMNS)).astype(np.float32)
    found = agreed(PROGRAM, {"x": x, "y": y})
    assert np.array_equal(found, np.exp((x + y).astype(np.float64)).astype(np.float32))
