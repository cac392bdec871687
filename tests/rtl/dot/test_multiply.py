# amaranth: UnusedElaboratable=no
"""Every pair of elements through decoders and multiplier, in every lane."""

import numpy as np
import pytest

from scalebox.codegen.isa.vocabulary import ElementType

from .blocks import PairInEveryLane, VerilatedBlock
from .exact import MIXES, value_table


@pytest.fixture(scope="module")
def pair() -> VerilatedBlock:
    return VerilatedBlock("pair_in_every_lane", PairInEveryLane())


@pytest.mark.parametrize(("a_type", "b_type"), MIXES, ids=lambda kind: kind.name)
def test_the_product_of_all_pairs_is_exact_and_their_specials_are_ieee(
    pair: VerilatedBlock, a_type: ElementType, b_type: ElementType
) -> None:
    codes = [np.arange(1 << kind.bits) for kind in (a_type, b_type)]
    a, b = (each * 17 if len(each) == 16 else each for each in codes)  # a nibble, twice in a byte
    out = pair(a=a[:, None], b=b, a_type=a_type, b_type=b_type)
    left, right = (
        value_table(kind)[each] for kind, each in zip((a_type, b_type), codes, strict=True)
    )
    with np.errstate(invalid="ignore"):
        expected = left[:, None] * right
    np.testing.assert_array_equal(out["is_nan"], np.isnan(expected))
    infinite = np.isinf(expected)
    # 0 times infinity is NaN whatever else is told.
    np.testing.assert_array_equal(
        out["is_infinity"][~np.isnan(expected)] == 1, infinite[~np.isnan(expected)]
    )
    np.testing.assert_array_equal(out["infinity_sign"][infinite], expected[infinite] < 0)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(out["sign"][finite], np.signbit(expected)[finite])
    exponent = out["exponent"].astype(np.uint16).view(np.int16) + out["shift"].astype(np.int16)
    magnitude = np.ldexp(out["product"].astype(np.float64), exponent)
    np.testing.assert_array_equal(magnitude[finite], np.abs(expected)[finite])
    assert (out["same"] == 1)[finite].all()
    assert expected.size == 1 << (a_type.bits + b_type.bits)


def test_four_bit_elements_need_no_shift(pair: VerilatedBlock) -> None:
    codes = np.arange(16) * 17
    for a_type, b_type in MIXES:
        if a_type.bits == 4:
            out = pair(a=codes[:, None], b=codes, a_type=a_type, b_type=b_type)
            assert not out["shift"].any()
