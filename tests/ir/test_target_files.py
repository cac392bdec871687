"""Machine files that are not as they should be, and what does not go together on a machine."""

import math
import os
from pathlib import Path

import pytest

from scalebox.ir.errors import MachineError
from scalebox.ir.target import Target, load_target, specs
from scalebox.ir.target_spec import Status

A5 = load_target("a5")
SIMULATOR = load_target("a5-vendor-sim")


def written(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path | str) -> MachineError:
    with pytest.raises(MachineError) as caught:
        load_target(path)
    return caught.value


# ------------------------------------------------------------------ the machines of the package


def test_the_vendors_simulator_has_the_published_constants():
    published = {
        "l1_to_l0a_bytes_per_cycle": 206.3,
        "l1_to_l0b_bytes_per_cycle": 223.8,
        "mte1_instruction_cycles": 0,
        "mad_head_cycles": 25,
        "mad_8bit_k_elements": 32,
        "mad_16bit_k_elements": 16,
        "mad_32bit_k_elements": 8,
        "mad_32bit_passes": 8,
        "drain_fixed_cycles": 343.4,
        "drain_row_cycles": 4.59,
        "drain_bytes_per_cycle": 30,
        "drain_misalignment_cycles": 0.26,
        "drain_c0_bytes": 32,
    }
    for name, value in published.items():
        assert getattr(SIMULATOR, name) == value
        assert SIMULATOR.provenance[name].status is Status.PUBLISHED


def test_the_vendors_simulator_differs_from_a5_in_two_fields():
    names = [name for name in specs() if getattr(SIMULATOR, name) != getattr(A5, name)]
    assert names == ["mte1_instruction_cycles", "drain_bytes_per_cycle"]


# ------------------------------------------------------------------ places


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (["cores = 0"], (2, 1)),
        (["", "  cores=0"], (3, 3)),
        (['"cores" = 0'], (2, 2)),
        (["l1_bytes = 512", "[cores]", "value = 0"], (3, 2)),
        (["[ 'cores' ]", "value = 0"], (2, 4)),
        (["cores.value = 0"], (2, 1)),
        (["# cores = 0", "cores = 0"], (3, 1)),
    ],
)
def test_an_impossible_value_is_shown_at_its_line(
    tmp_path: Path, lines: list[str], place: tuple[int, int]
):
    path = written(tmp_path, "\n".join(['inherit = "a5"', *lines]))
    error = refusal(path)
    assert error.message == "cores must be an integer, 1 to 4096, not 0."
    assert error.span is not None
    assert (error.span.filename, error.span.line, error.span.column) == (str(path), *place)
    assert "^^^^^" in error.render()


def test_a_key_whose_line_is_not_found_names_the_file(tmp_path: Path):
    error = refusal(written(tmp_path, 'inherit = "a5"\n"c\\u006fres" = 0\n'))
    assert error.span is None
    assert error.note == f"in the machine file {str(tmp_path / 'mine.toml')!r}"


def test_a_mistake_in_a_parent_is_shown_there(tmp_path: Path):
    base = written(tmp_path, 'inherit = "a5"\ncores = 0\n', "base.toml")
    error = refusal(written(tmp_path, 'inherit = "base.toml"\n'))
    assert error.span is not None
    assert (error.span.filename, error.span.line) == (str(base), 2)


def test_a_parent_that_is_not_there_is_shown_where_it_is_named(tmp_path: Path):
    error = refusal(written(tmp_path, '\ninherit = "a6"\n'))
    assert error.message == "A machine must be a name or the path of a TOML file, not 'a6'."
    assert error.hint == "valid here: a5, a5-vendor-sim"
    assert error.span is not None
    assert error.span.line == 2
    error = refusal(written(tmp_path, 'inherit = "none.toml"\n'))
    assert "must be readable, which it is not" in error.message
    assert error.span is not None


def test_broken_toml_is_shown_at_its_line(tmp_path: Path):
    error = refusal(written(tmp_path, 'inherit = "a5"\ncores = = 2\n'))
    assert error.span is not None
    assert (error.span.line, error.span.column) == (2, 9)


# ------------------------------------------------------------------ inheriting


def test_a_long_chain_of_files_is_followed(tmp_path: Path):
    written(tmp_path, 'inherit = "a5"\ncores = 7\n', "0.toml")
    for number in range(1, 1500):
        written(tmp_path, f'inherit = "{number - 1}.toml"\n', f"{number}.toml")
    assert load_target(tmp_path / "1499.toml").cores == 7


def test_the_youngest_of_a_chain_decides(tmp_path: Path):
    written(tmp_path, 'inherit = "a5-vendor-sim"\ncores = 4\nqueue_entries = 8\n', "base.toml")
    path = written(tmp_path, 'inherit = "base.toml"\nqueue_entries = 2\n')
    mine = load_target(path)
    assert (mine.cores, mine.queue_entries, mine.drain_bytes_per_cycle) == (4, 2, 30.0)


def test_a_file_does_not_inherit_from_itself_by_another_name(tmp_path: Path):
    path = written(tmp_path, 'inherit = "other.toml"\n')
    (tmp_path / "other.toml").symlink_to(path)
    error = refusal(path)
    assert error.message.startswith("A machine file must not inherit from itself, as mine.toml")
    assert error.span is not None


def test_a_file_named_as_a_machine_may_inherit_from_it(tmp_path: Path):
    mine = load_target(written(tmp_path, 'inherit = "a5"\ncores = 2\n', "a5.toml"))
    assert (mine.name, mine.cores) == ("a5", 2)


def test_a_file_without_a_parent_says_how_to_have_one(tmp_path: Path):
    error = refusal(written(tmp_path, "clock_hz = 1000\n"))
    assert error.hint == 'a file with inherit = "a5" gives only what differs'


# ------------------------------------------------------------------ files that are none


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("cores = 1\ncores = 2\n", "Cannot overwrite a value"),
        ("[cores]\nvalue = 1\n[cores]\nvalue = 2\n", "Cannot declare"),
        ("cores = 1e\n", "Expected newline"),
        ("cores\n", "Expected '='"),
        ("cores = " + "[" * 5000 + "\n", "must be UTF-8 TOML"),
        ("cores = " + "9" * 5000 + "\n", "must be UTF-8 TOML"),
    ],
)
def test_bad_toml_is_refused(tmp_path: Path, text: str, part: str):
    assert part in refusal(written(tmp_path, text)).message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cores = 1e400", "cores must be an integer, 1 to 4096, not inf."),
        ("launch_seconds = 1e400", "launch_seconds must be a number, 0 to 60, not inf."),
        ("launch_seconds = -inf", "launch_seconds must be a number, 0 to 60, not -inf."),
        ("launch_seconds = true", "launch_seconds must be a number, 0 to 60, not True."),
        ("cores = [[1]]", "cores must be an integer, 1 to 4096, not [[1]]."),
        ("cores = 0x" + "f" * 5000, "cores must be an integer, 1 to 4096, not an integer of 20000 bits."),
        ("cores = [0x" + "f" * 5000 + "]", "cores must be an integer, 1 to 4096, not such a list."),
        (
            "cores = '" + "x" * 5000 + "'",
            f"cores must be an integer, 1 to 4096, not '{'x' * 79}….",
        ),
        ("cores = 2026-11-30", "cores must be an integer, 1 to 4096, not datetime.date(2026, 11, 30)."),
        ("[[cores]]\nvalue = 1", "cores must be an integer, 1 to 4096, not [{'value': 1}]."),
        ("[cores.value]\nvalue = 1", "cores must be an integer, 1 to 4096, not {'value': 1}."),
        ("[cores]\nvalue = 1\nstatus = 1", "status of cores must be one of published, derived, assumed, not 1."),
        ("mad_pairs = 'E4M3*E4M3'", "mad_pairs must be a non-empty list of pairs from E4M3 and E5M2 or E2M1 and E1M2, not 'E4M3*E4M3'."),
        ("mad_pairs = [[{}, 1]]", "mad_pairs must be a non-empty list of pairs from E4M3 and E5M2 or E2M1 and E1M2, not [{}, 1]."),
        ("'' = 1", "A machine field must be one of the record's, not ''."),
        ("provenance = 1", "A machine field must be one of the record's, not 'provenance'."),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_in_a_line(tmp_path: Path, line: str, message: str):
    assert refusal(written(tmp_path, f'inherit = "a5"\n{line}\n')).message == message


def test_a_file_may_begin_as_some_editors_begin_it(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b'\xef\xbb\xbfinherit = "a5"\r\ncores = 3\r\n')
    assert load_target(path).cores == 3


def test_a_file_of_no_end_is_refused(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"#" * ((1 << 20) + 1))
    assert refusal(path).message.endswith("must have at most 1048576 bytes.")


def test_places_where_no_file_can_be_are_refused(tmp_path: Path):
    loop = tmp_path / "loop.toml"
    loop.symlink_to(loop)
    for path in (loop, tmp_path, tmp_path / ("x" * 300 + ".toml"), "a\0.toml", "no/such.toml"):
        assert "must be readable, which it is not" in refusal(path).message
    for text in ("", ".", "a\0", "x" * 300):
        assert "must be a name or the path of a TOML file" in refusal(text).message


def test_a_file_whose_name_is_no_text_can_be_used_and_written_down(tmp_path: Path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/m\xff.toml"))
    path.write_text('inherit = "a5"\ncores = 3\n', encoding="utf-8")
    mine = load_target(path)
    assert mine.name == "m\\udcff"
    assert load_target(written(tmp_path, mine.to_toml())) == mine


@pytest.mark.parametrize("name", ["größer", "two\nlines", 'a "quoted" \\ one', "\x7f\x01", "😀"])
def test_a_record_is_written_as_a_file_that_gives_it_back(tmp_path: Path, name: str):
    named = Target(
        name=name,
        provenance=A5.provenance,
        **{field: getattr(A5, field) for field in specs()},
    )
    assert load_target(written(tmp_path, named.to_toml())) == named


# ------------------------------------------------------------------ what does not go together


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"l2_bytes": 32768},
            "l2_block_bytes must be at most l2_bytes (32768), or l2_bytes must be 0, not 65536.",
        ),
        (
            {"l2_block_bytes": 1 << 28},
            "l2_block_bytes must be at most l2_bytes (134217728), or l2_bytes must be 0, not 268435456.",
        ),
        (
            {"l2_block_bytes": 800},
            "l2_block_bytes must be a multiple of l2_line_bytes (512), not 800.",
        ),
        (
            {"l2_line_bytes": 1 << 17},
            "l2_block_bytes must be a multiple of l2_line_bytes (131072), not 65536.",
        ),
        (
            {"l0a_bytes": 1 << 17},
            "scale_a_bytes must be at least a 16th of l0a_bytes (131072), not 4096.",
        ),
        (
            {"scale_b_bytes": 4064},
            "scale_b_bytes must be at least a 16th of l0b_bytes (65536), not 4064.",
        ),
    ],
)
def test_fields_that_do_not_go_together_are_refused(
    tmp_path: Path, settings: dict[str, int], message: str
):
    with pytest.raises(MachineError) as caught:
        A5.with_settings(settings)
    assert caught.value.message == message
    lines = "\n".join(f"{name} = {value}" for name, value in settings.items())
    error = refusal(written(tmp_path, f'inherit = "a5"\n\n{lines}\n'))
    assert error.message == message
    assert error.span is not None
    assert (error.span.filename, error.span.line) == (str(tmp_path / "mine.toml"), 3)


def test_fields_that_go_together_are_set_together():
    assert A5.with_settings({"l2_bytes": 0}).l2_bytes == 0
    assert A5.with_settings({"l2_bytes": 65536}).l2_bytes == A5.l2_block_bytes
    wide = A5.with_settings({"l0a_bytes": 1 << 17, "scale_a_bytes": 1 << 13})
    assert wide.l0a_bytes >> 4 == wide.scale_a_bytes


@pytest.mark.parametrize(
    "text", ["0x" + "f" * 5000, "9" * 5000, "-9" + "9" * 5000, "x" * 5000, "1e400", "nan", "0x", "1e"]
)  # fmt: skip
def test_a_setting_of_any_length_is_refused_in_a_line(text: str):
    for name in ("cores", "launch_seconds", "mad_pairs"):
        with pytest.raises(MachineError) as caught:
            A5.with_settings({name: text})
        assert caught.value.message.startswith(f"{name} must be ")
        assert len(caught.value.message) < 250


@pytest.mark.parametrize(
    "name", sorted(name for name, rule in specs().items() if not rule.type.is_pairs)
)
def test_no_field_may_be_negative_or_beyond_all_bounds(name: str):
    values: tuple[object, ...] = (-1, -0.5, 1 << 63, 1e300, math.inf, math.nan, True, None, "zero")
    for value in values:
        with pytest.raises(MachineError, match=f"^{name} must be "):
            A5.with_settings({name: value})
    if name.endswith("_bytes_per_cycle"):
        with pytest.raises(MachineError, match=f"^{name} must be "):
            A5.with_settings({name: 0})
