"""Global memory: where buffers lie, who owns their bytes, and which bytes count as written."""

from itertools import pairwise

import numpy as np
import pytest

from scalebox.sim.datapaths.kernels import BASE, VIEW_WORDS
from scalebox.sim.memory import GM_ALIGNMENT, GM_GUARD, GlobalMemory

SIZES = {"a": 700, "out": 512, "b": 33, "work": 100}


@pytest.fixture
def images() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    given = {name: rng.integers(1, 256, SIZES[name]).astype(np.uint8) for name in ("a", "b")}
    return given | {"out": np.zeros(SIZES["out"], np.uint8)}


def place_of(gm: GlobalMemory, name: str) -> int:
    views = np.zeros((1, VIEW_WORDS), np.int64)
    views[0, BASE] = gm.allocations[name].address
    return int(gm.placed(views)[0, BASE])


def test_buffers_have_aligned_addresses_with_guards_between_them(
    images: dict[str, np.ndarray],
) -> None:
    gm = GlobalMemory(SIZES, images)
    places = sorted(gm.allocations.values(), key=lambda each: each.address)
    assert [each.name for each in places] == ["a", "out", "b", "work"]
    assert all(each.address % GM_ALIGNMENT == 0 for each in places)
    for one, other in pairwise(places):
        assert one.address + one.size + GM_GUARD <= other.address


def test_one_array_reaches_over_all_buffers(images: dict[str, np.ndarray]) -> None:
    gm = GlobalMemory(SIZES, images, lent={"a", "b"})
    for name, image in images.items():
        at = place_of(gm, name)
        np.testing.assert_array_equal(gm.data[at : at + SIZES[name]], image)
    at = place_of(gm, "work")
    gm.data[at : at + 100] = 5
    assert (gm.view("work") == 5).all()


def test_what_is_lent_is_not_copied_and_all_else_is(images: dict[str, np.ndarray]) -> None:
    gm = GlobalMemory(SIZES, images, lent={"a"})
    assert np.shares_memory(gm.view("a"), images["a"])
    assert not np.shares_memory(gm.view("b"), images["b"])
    gm.view("b")[:] = 0
    gm.view("out")[:] = 1
    assert images["b"].all()
    assert not images["out"].any()


def test_an_image_of_any_strides_and_rank_is_taken(images: dict[str, np.ndarray]) -> None:
    wide = np.repeat(images["a"], 2)
    strided = wide[::2].reshape(7, 100)
    gm = GlobalMemory(SIZES, images | {"a": strided}, lent={"a"})
    at = place_of(gm, "a")
    np.testing.assert_array_equal(gm.data[at : at + 700], images["a"])


def test_only_what_nobody_gave_has_written_masks(images: dict[str, np.ndarray]) -> None:
    gm = GlobalMemory(SIZES, images)
    assert not gm.written.any()
    for name in images:
        hidden = place_of(gm, name) - gm.written_base
        assert hidden < 0 or hidden >= len(gm.written)
    hidden = place_of(gm, "work") - gm.written_base
    assert 0 <= hidden <= len(gm.written) - SIZES["work"]
    assert gm.written_view("work").size == SIZES["work"]


def test_a_released_buffer_belongs_to_one_owner(images: dict[str, np.ndarray]) -> None:
    gm = GlobalMemory(SIZES, images, lent={"a"})
    first, second = gm.released("out"), gm.released("out")
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(gm.released("a"), images["a"])
    assert not np.shares_memory(gm.released("work"), gm.view("work"))
    np.testing.assert_array_equal(gm.released("a"), images["a"])


def test_without_bytes_there_are_addresses() -> None:
    gm = GlobalMemory(SIZES, {}, filled=False)
    assert gm.data.size == gm.written.size == 0
    assert gm.size > sum(SIZES.values())
