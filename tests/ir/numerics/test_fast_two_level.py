"""The compiled product of two levels of scales, bit for bit that of `two_level`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.ir import numerics
from scalebox.ir.dtypes import E1M2, DType, SimpleDType
from scalebox.ir.numerics import fast_matmul, quantization, two_level

TENSOR_SCALES = [1.0, 1.1, -0.7, 3e38, 1e-30, 3e-41, 1.4e-45, 0.0, -0.0]


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    form=st.sampled_from(
        [
            (DType.E2M1, 16),
            (E1M2, 16),
            (DType.E2M3, 16),
            (DType.E2M1, 8),
            (DType.E2M1, 32),
            (E1M2, 5),
        ]
    ),
    shape=st.tuples(st.integers(1, 70), st.integers(1, 300), st.integers(1, 70)),
    tensors=st.tuples(st.sampled_from(TENSOR_SCALES), st.sampled_from(TENSOR_SCALES))
    | st.tuples(st.floats(2.0**-40, 2.0**40, width=32), st.floats(-4, 4, width=32)),
    highest=st.sampled_from([126, 255]),
    starts=st.booleans(),
    threads=st.sampled_from([1, 2, 5]),
)
def test_any_shape_and_scales(
    seed: int,
    form: tuple[SimpleDType, int],
    shape: tuple[int, int, int],
    tensors: tuple[float, float],
    highest: int,
    starts: bool,
    threads: int,
) -> None:
    rng = np.random.default_rng(seed)
    element, block = form
    rows, depth, columns = shape
    groups = -(-depth // block)
    a, b = (
        rng.integers(0, 1 << element.bits, matrix, dtype=np.uint8)
        for matrix in ((rows, depth), (depth, columns))
    )
    a_scales, b_scales = (
        rng.integers(0, highest, matrix, dtype=np.uint8, endpoint=True)
        for matrix in ((rows, groups), (groups, columns))
    )
    acc = rng.choice(np.array([-0.0, 1.5, -3.25], np.float32), (rows, columns)) if starts else None
    tensor_scale = np.float32(tensors[0]), np.float32(tensors[1])
    assert fast_matmul.has_exact_groups(element, block)
    found = fast_matmul.matmul_groups(
        a, a_scales, b, b_scales, element=element, block=block, tensor_scale=tensor_scale,
        acc=acc, threads=threads,
    )  # fmt: skip
    expected = two_level.matmul_groups(
        a, a_scales, b, b_scales, element=element, block=block, tensor_scale=tensor_scale, acc=acc
    )
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_what_a_sum_must_leave_room_for() -> None:
    assert fast_matmul.has_exact_groups(DType.E2M3, 16)
    assert not fast_matmul.has_exact_groups(DType.E3M2, 16)  # 448 * 448 * 15 * 15 * 16 > 2^29
    assert not fast_matmul.has_exact_groups(DType.E2M1, 64)


@pytest.mark.parametrize("compiled_from", [0, 1 << 60], ids=["compiled", "numpy"])
def test_the_product_of_two_arrays(compiled_from: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantization, "COMPILED_FROM", compiled_from)
    rng = np.random.default_rng(50)
    a = numerics.quantize(rng.standard_normal((20, 100)), DType.NVFP4)
    b = numerics.quantize(rng.standard_normal((100, 30)), DType.NVFP4, axis=0)
    product = numerics.dequantize(a).astype(np.float64) @ numerics.dequantize(b)
    np.testing.assert_allclose(numerics.matmul(a, b), product, rtol=1e-5, atol=1e-4)


def test_products_beside_a_tie_are_rounded_once() -> None:
    # Tensor scales are solved for so that the product, of 64 bits, is half a float32 step but for
    # less than float64 can tell.
    rng = np.random.default_rng(51)
    step, scale = 1 << 40, np.array([[0x57]], np.uint8)  # a scale of 15 times a power of two
    nearby = np.arange(-255, 256, 2)
    whole = np.array([0, 1, 2, 3, 4, 6, 8, 12])
    found = 0
    while found < 8:
        a, b = (rng.integers(1, 8, shape, dtype=np.uint8) for shape in ((1, 16), (16, 1)))
        total = int(whole[a[0]] @ whole[b[:, 0]]) * 15 * 15
        odd = total // (total & -total)
        left = int(rng.integers(1 << 22, 1 << 23)) * 2 + 1
        inverse = np.uint64(pow(odd * left, -1, step))
        rights = (np.uint64(step // 2) + nearby.astype(np.uint64)) * inverse % np.uint64(step)
        for right in rights[(rights >= 1 << 23) & (rights < 1 << 24)].tolist():
            if (odd * left * right).bit_length() != 64:
                continue
            found += 1
            ours, plain = (
                multiply(
                    a, scale, b, scale, element=DType.E2M1, block=16,
                    tensor_scale=(np.float32(left), np.float32(right)),
                )
                for multiply in (fast_matmul.matmul_groups, two_level.matmul_groups)
            )  # fmt: skip
            assert ours.view(np.uint32) == plain.view(np.uint32)
