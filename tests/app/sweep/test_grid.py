"""Grids: what lists, ranges and combinations stand for, in which order, and what is refused."""

import pytest

from scalebox.app.sweep.grid import MOST_RUNS, make_grid
from scalebox.ir.errors import InputError, UserError
from scalebox.ir.target import load_target


def test_sizes_change_most_slowly_then_machines_then_fields() -> None:
    grid = make_grid({"M": "1,2"}, "a5,a5-vendor-sim", {"cores": [4, 8]})
    found = [(p.index, p.params["M"], p.machine, p.settings["cores"]) for p in grid.points()]
    assert found == [
        (0, 1, "a5", 4),
        (1, 1, "a5", 8),
        (2, 1, "a5-vendor-sim", 4),
        (3, 1, "a5-vendor-sim", 8),
        (4, 2, "a5", 4),
        (5, 2, "a5", 8),
        (6, 2, "a5-vendor-sim", 4),
        (7, 2, "a5-vendor-sim", 8),
    ]
    assert grid.runs == len(found)


def test_the_last_of_several_sizes_changes_faster() -> None:
    points = make_grid({"M": [1, 2], "K": [3, 4]}).points()
    assert [(p.params["M"], p.params["K"]) for p in points] == [(1, 3), (1, 4), (2, 3), (2, 4)]


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (7, (7,)),
        ("7", (7,)),
        ("0x10,3", (16, 3)),
        ("8..32:8", (8, 16, 24, 32)),
        (" 1 .. 3 ,9", (1, 2, 3, 9)),
        ("5..5", (5,)),
        (range(3), (0, 1, 2)),
        (["1..2", 4], (1, 2, 4)),
    ],
)
def test_values_are_a_number_a_list_or_a_range(given: object, values: tuple[int, ...]) -> None:
    assert make_grid({"M": given}).params == {"M": values}


def test_fields_are_of_their_own_type() -> None:
    settings = {"gm_port_bytes_per_cycle": "64,1.5e2", "mad_pairs": "E4M3*E4M3,E5M2*E5M2"}
    fields = make_grid(settings=settings).settings
    assert fields["gm_port_bytes_per_cycle"] == (64.0, 150.0)
    assert fields["mad_pairs"] == ((("E4M3", "E4M3"), ("E5M2", "E5M2")),)


def test_a_range_of_integers_gives_numbers_to_a_field_that_takes_any() -> None:
    (values,) = make_grid(settings={"gm_port_bytes_per_cycle": "64..256:64"}).settings.values()
    assert values == (64.0, 128.0, 192.0, 256.0)
    assert all(isinstance(value, float) for value in values)


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ("1MiB,2MiB", (1 << 20, 1 << 21)),
        (["1.5MiB", 65536], (3 << 19, 1 << 16)),
        ("1MiB..3MiB:1MiB", (1 << 20, 2 << 20, 3 << 20)),
        ("0..128KiB:65536", (0, 1 << 16, 1 << 17)),
    ],
)
def test_sizes_may_have_binary_units(given: object, sizes: tuple[int, ...]) -> None:
    assert make_grid(settings={"l2_bytes": given}).settings == {"l2_bytes": sizes}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"l2_bytes": "1MB,2MB"}, "not '1MB'"),
        ({"l2_bytes": "1MiB,1024KiB"}, "must have each value once, but 1048576 comes twice"),
        ({"l2_bytes": "1MiB..2MiB:1MB"}, "must have a range that goes up"),
        ({"l2_bytes": "1MiB..2MiB:0.3KiB"}, "must have a range that goes up"),
        ({"cores": "1..2KiB:1"}, "cores must be an integer"),
    ],
)
def test_other_sizes_with_units_are_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        make_grid(settings=settings)


def test_machines_may_be_records() -> None:
    target = load_target("a5")
    (point,) = make_grid(machines=target).points()
    assert point.machine is target
    assert point.machine_name == "a5"


@pytest.mark.parametrize(
    "given", ["", "1,", ",", "x", "1.5", "1..", "4..1", "1..4:0", "1..4:2", "1,1", "4,0x4", [], None, 1.5]
)  # fmt: skip
def test_other_sizes_are_refused(given: object) -> None:
    with pytest.raises(InputError, match=r"^The parameter M must "):
        make_grid({"M": given})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"nosuch": 1}, "nosuch"),
        ({"cores": "0"}, "cores must be an integer, 1 to 4096"),
        ({"cores": "many"}, "cores must be an integer"),
        ({"hbm_bytes_per_cycle": "1.5..4"}, "a list"),
        ({"hbm_bytes_per_cycle": "1..4.0"}, "a list"),
        ({"hbm_bytes_per_cycle": "1..4:2"}, "ends on a step"),
        ({"cores": []}, "a value at least"),
        ([], "must map names to values"),
    ],
)
def test_other_fields_are_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        make_grid(settings=settings)


@pytest.mark.parametrize("machines", ["nope", "a5,", "", "a5,a5", [], 7])
def test_other_machines_are_refused(machines: object) -> None:
    with pytest.raises(UserError, match="machine"):
        make_grid(machines=machines)  # type: ignore[arg-type]


def test_too_large_a_grid_is_refused_before_it_is_made() -> None:
    assert make_grid({"M": f"1..{MOST_RUNS}"}).runs == MOST_RUNS
    for params in ({"M": f"1..{10**30}"}, {"M": "1..101", "K": "1..100"}, {"M": range(10**12)}):
        with pytest.raises(InputError, match="must have 10,000 runs at most"):
            make_grid(params)
