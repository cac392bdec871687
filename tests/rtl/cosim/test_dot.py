# amaranth: UnusedElaboratable=no
"""What the co-simulation of the dot unit is asked for: what is refused, and what makes no sum."""

import re

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.isa.vocabulary import ElementType
from scalebox.ir.errors import UserError
from scalebox.rtl.cosim.dot import evaluate_dots, pack_steps, run_steps

E4M3, E5M2, E2M1, _ = ElementType


def _zeros(*shape: int) -> npt.NDArray[np.uint8]:
    return np.zeros(shape, np.uint8)


@pytest.mark.parametrize(
    ("changes", "kind", "sentence"),
    [
        (
            {"b_type": E2M1},
            ValueError,
            "a_type and b_type must both have elements of 8 bits, or both of 4, not E4M3 and E2M1",
        ),
        ({"a": np.zeros((2, 40))}, TypeError, "a must be an array of uint8, not of float64"),
        ({"a": [0]}, TypeError, "a must be an array of uint8, not an object of type list"),
        (
            {"a_type": 0},
            TypeError,
            "a_type must be an ElementType (E4M3, E5M2, E2M1, E1M2), not 0",
        ),
        (
            {"b_type": "E4M3"},
            TypeError,
            "b_type must be an ElementType (E4M3, E5M2, E2M1, E1M2), not 'E4M3'",
        ),
        ({"b": _zeros(2, 41)}, ValueError, "b must be of shape [2, 40], not [2, 41]"),
        ({"a_scales": _zeros(2, 1)}, ValueError, "a_scales must be of shape [2, 2], not [2, 1]"),
        ({"a": _zeros(40)}, ValueError, "a must be of shape [any, any], not [40]"),
        ({"start": np.zeros(2)}, TypeError, "start must be an array of float32, not of float64"),
        (
            {"a_type": E2M1, "b_type": E2M1, "b": _zeros(2, 40) + np.uint8(16)},
            ValueError,
            "b must be codes of 4 bits, not 16",
        ),
        (
            {
                "a": _zeros(2, 0),
                "b": _zeros(2, 0),
                "a_scales": _zeros(2, 0),
                "b_scales": _zeros(2, 0),
            },
            ValueError,
            "a must have at least one element a row, not 0",
        ),
    ],
)
def test_what_is_no_sum_is_refused(
    changes: dict[str, object], kind: type[Exception], sentence: str
) -> None:
    given: dict[str, object] = {
        "a": _zeros(2, 40),
        "a_scales": _zeros(2, 2),
        "b": _zeros(2, 40),
        "b_scales": _zeros(2, 2),
        "a_type": E4M3,
        "b_type": E4M3,
    }
    with pytest.raises(kind) as caught:
        evaluate_dots(**{**given, **changes})  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == sentence
    assert isinstance(caught.value, UserError)


ONE_STEP = pack_steps(
    *(_zeros(1, 32), _zeros(1, 1), _zeros(1, 32), _zeros(1, 1)), a_type=E4M3, b_type=E4M3
)[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"stall": 1.0}, "stall must be at least 0 and less than 1, not 1.0"),
        ({"idle": -0.5}, "idle must be at least 0 and less than 1, not -0.5"),
        ({"seed": 0}, f"seed must be an integer from 1 to {(1 << 63) - 1}, not 0"),
        ({"seed": 1 << 63}, f"seed must be an integer from 1 to {(1 << 63) - 1}, not {1 << 63}"),
    ],
)
def test_pauses_that_would_never_end_are_refused(changes: dict[str, float], sentence: str) -> None:
    words = np.zeros((1, ONE_STEP.shape[-1]), np.uint32)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$") as caught:
        run_steps(words, **changes)  # pyright: ignore[reportArgumentType]
    assert isinstance(caught.value, UserError)


def test_no_sum_is_asked_for_where_no_step_is_a_last_one() -> None:
    assert run_steps(np.zeros_like(ONE_STEP)).sums.size == 0
    assert run_steps(ONE_STEP[:0]).sums.size == 0
    behind = np.concatenate([ONE_STEP, np.zeros_like(ONE_STEP)])
    np.testing.assert_array_equal(run_steps(behind).sums, [0.0])
    nothing = evaluate_dots(
        *(_zeros(0, 40), _zeros(0, 2), _zeros(0, 40), _zeros(0, 2)), a_type=E4M3, b_type=E5M2
    )
    assert nothing.shape == (0,)
    assert nothing.dtype == np.float32
