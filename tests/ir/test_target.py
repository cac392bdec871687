import re
from pathlib import Path

import pytest

from scalebox.ir.errors import MachineError, Span
from scalebox.ir.target import Target, describe, load_target, machine_names, page, specs
from scalebox.ir.target_spec import Provenance, Status, Unit

A5 = load_target("a5")
PAGE = Path(__file__).parents[2] / "docs" / "machine.md"


def machine(folder: Path, text: str, name: str = "mine.toml") -> Target:
    (folder / name).write_text(text, encoding="utf-8")
    return load_target(folder / name)


def refusal(folder: Path, text: str) -> MachineError:
    with pytest.raises(MachineError) as caught:
        machine(folder, text)
    return caught.value


def test_a5_has_the_published_buffers_clock_and_cores():
    kib = 1024
    assert (A5.l1_bytes, A5.l0c_bytes) == (512 * kib, 256 * kib)
    assert (A5.l0a_bytes, A5.l0b_bytes) == (64 * kib, 64 * kib)
    assert (A5.bias_bytes, A5.scale_a_bytes, A5.scale_b_bytes) == (4 * kib, 4 * kib, 4 * kib)
    assert A5.ub_bytes == 240 * kib
    assert A5.clock_hz == 1_650_000_000
    assert A5.cores == 32


def test_a5_has_the_published_cost_of_the_cube_path():
    assert A5.mad_head_cycles == 25
    assert (A5.l1_to_l0a_bytes_per_cycle, A5.l1_to_l0b_bytes_per_cycle) == (206.3, 223.8)
    assert (A5.drain_fixed_cycles, A5.drain_row_cycles) == (343.4, 4.59)
    assert A5.peak_macs_per_cycle(8) == 8192
    assert A5.peak_macs_per_cycle(4) == 16384


def test_a5_has_the_published_cost_of_the_vector_path():
    """Issue, ports, latencies of VADD, VMUL, VEXP, VDIV, VLDS, VSTS; what is around them."""
    published = {
        "vector_issue_width": 2,
        "vector_load_ports": 2,
        "vector_store_ports": 1,
        "vector_startup_cycles": 23,
        "vector_drain_cycles": 12,
        "vector_add_cycles": 7,
        "vector_mul_cycles": 8,
        "vector_exp_cycles": 16,
        "vector_div_cycles": 17,
        "vector_move_cycles": 9,
    }
    for name, value in published.items():
        assert getattr(A5, name) == value
        assert A5.provenance[name].status is Status.PUBLISHED


def test_a5_reaches_the_announced_peaks():
    for bits, pflops in ((8, 1), (4, 2)):
        flops = 2 * A5.peak_macs_per_cycle(bits) * A5.cores * A5.clock_hz
        assert flops == pytest.approx(pflops * 1e15, rel=0.15)


def test_a_scale_buffer_holds_the_scales_of_a_full_operand_buffer():
    assert A5.l0a_bytes >> 4 == A5.scale_a_bytes
    assert A5.l0b_bytes >> 4 == A5.scale_b_bytes


def test_every_field_has_a_unit_in_its_name_and_a_rule():
    for name, rule in specs().items():
        if rule.unit is not Unit.COUNT:
            assert name.endswith(f"_{rule.unit.value}")
        else:
            assert not name.endswith(tuple(f"_{unit.value}" for unit in Unit if unit.value))
        assert rule.doc.endswith(".")
        assert rule.rule


@pytest.mark.parametrize("name", machine_names())
def test_every_value_that_comes_with_the_package_has_a_source(name: str):
    target = load_target(name)
    assert set(target.provenance) == set(specs())
    assert target.name == name
    for origin in target.provenance.values():
        assert not origin.source.startswith("set in")


def test_what_design_calls_assumed_is_assumed():
    for name in ("queue_entries", "flag_cycles", "l2_hit_cycles", "gm_port_bytes_per_cycle"):
        assert A5.provenance[name].status is Status.ASSUMED
    assert A5.provenance["l1_bytes"].status is Status.PUBLISHED
    assert A5.provenance["l1_to_scale_bytes_per_cycle"].status is Status.DERIVED


def test_a_record_is_handed_back_as_it_is():
    assert load_target(A5) is A5


def test_a_file_inherits_and_changes_plain_values_and_tables(tmp_path: Path):
    mine = machine(
        tmp_path,
        'inherit = "a5"\nl1_bytes = 262144\n'
        '[cores]\nvalue = 8\nsource = "a smaller part"\nstatus = "published"\n',
    )
    assert mine.name == "mine"
    assert (mine.l1_bytes, mine.cores, mine.l0a_bytes) == (262144, 8, A5.l0a_bytes)
    assert mine.provenance["l1_bytes"] == Provenance("set in mine.toml", Status.ASSUMED)
    assert mine.provenance["cores"] == Provenance("a smaller part", Status.PUBLISHED)
    assert mine.provenance["l0a_bytes"] == A5.provenance["l0a_bytes"]


def test_a_file_inherits_from_a_file_beside_it(tmp_path: Path):
    machine(tmp_path, 'inherit = "a5"\ncores = 4\nname = "base"\n', "base.toml")
    mine = machine(tmp_path, 'inherit = "base.toml"\nqueue_entries = 2\n')
    assert (mine.cores, mine.queue_entries) == (4, 2)
    assert mine.name == "mine"


def test_inheriting_in_a_circle_is_refused(tmp_path: Path):
    (tmp_path / "other.toml").write_text('inherit = "mine.toml"\n')
    error = refusal(tmp_path, 'inherit = "other.toml"\n')
    assert error.message == (
        "A machine file must not inherit from itself, as mine.toml → other.toml → mine.toml does."
    )


def test_an_unknown_key_lists_near_ones_and_the_file(tmp_path: Path):
    error = refusal(tmp_path, 'inherit = "a5"\nl1_byts = 1024\n')
    assert error.message == "A machine field must be one of the record's, not 'l1_byts'."
    assert error.hint is not None
    assert error.hint.startswith("the nearest are l1_bytes, ")
    assert error.hint.endswith("; docs/machine.md lists all")
    assert error.span == Span(str(tmp_path / "mine.toml"), 2, 1, 2, 8)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("clock_hz = 0", "clock_hz must be an integer, 1 to 281474976710656, not 0."),
        ("cores = -1", "cores must be an integer, 1 to 4096, not -1."),
        ("cores = true", "cores must be an integer, 1 to 4096, not True."),
        ("cores = 2.0", "cores must be an integer, 1 to 4096, not 2.0."),
        ('cores = "2"', "cores must be an integer, 1 to 4096, not '2'."),
        (
            "l1_bytes = 1000",
            "l1_bytes must be an integer, 512 to 16777216, a multiple of 32, not 1000.",
        ),
        (
            "l0a_bytes = 524288",
            "l0a_bytes must be an integer, 512 to 262144, a multiple of 512, not 524288.",
        ),
        ("scale_beat_bytes = 24", "scale_beat_bytes must be a power of two, 1 to 64, not 24."),
        (
            "hbm_bytes_per_cycle = 0",
            "hbm_bytes_per_cycle must be a number, 0.001 to 4294967296, not 0.",
        ),
        (
            "hbm_bytes_per_cycle = nan",
            "hbm_bytes_per_cycle must be a number, 0.001 to 4294967296, not nan.",
        ),
        (
            "drain_row_cycles = -0.5",
            "drain_row_cycles must be a number, 0 to 65536, not -0.5.",
        ),
        (
            "mad_pairs = []",
            "mad_pairs must be a non-empty list of pairs from E4M3 and E5M2 or E2M1 and E1M2, "
            "not [].",
        ),
        (
            'mad_pairs = [["E4M3", "E2M1"]]',
            "mad_pairs must be a non-empty list of pairs from E4M3 and E5M2 or E2M1 and E1M2, "
            "not ['E4M3', 'E2M1'].",
        ),
        (
            'vector_casts = [["Float32", "E8M0"]]',
            "vector_casts must be a non-empty list of pairs of two different dtypes of BFloat16, E1M2, "
            "E2M1, E2M3, E3M2, E4M3, E5M2, Float16, Float32, Float64, Index, Int16, Int32, Int4, "
            "Int64, Int8, UInt16, UInt32, UInt4, UInt64, UInt8, not ['Float32', 'E8M0'].",
        ),
        ("cores = {source = 'x'}", "cores must have a value, which is missing."),
        (
            "cores = {value = 1, origin = 'x'}",
            "A key of cores must be one of value, source, status, not 'origin'.",
        ),
        (
            "cores = {value = 1, status = 'guessed'}",
            "status of cores must be one of published, derived, assumed, not 'guessed'.",
        ),
        (
            "cores = {value = 1, source = ''}",
            "source of cores must be a non-empty string, not ''.",
        ),
    ],
)
def test_an_impossible_value_names_its_field(tmp_path: Path, line: str, message: str):
    assert refusal(tmp_path, f'inherit = "a5"\n{line}\n').message == message


def test_a_file_without_a_parent_gives_every_field(tmp_path: Path):
    error = refusal(tmp_path, "clock_hz = 1000\n")
    assert error.message.startswith("cores must be given, or come by inherit, in the machine file")


@pytest.mark.parametrize("line", ["name = 3", 'inherit = ""', "inherit = 1"])
def test_name_and_parent_are_text(tmp_path: Path, line: str):
    key = line.split()[0]
    assert refusal(tmp_path, f"{line}\n").message.startswith(f"{key} must be a non-empty string")


def test_a_file_that_is_no_toml_is_refused_with_the_line(tmp_path: Path):
    error = refusal(tmp_path, 'inherit = "a5"\ncores = = 2\n')
    assert "must be UTF-8 TOML, which it is not" in error.message
    assert "line 2" in error.message


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(MachineError, match="must be UTF-8 TOML, which it is not"):
        load_target(tmp_path / "mine.toml")


def test_a_machine_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(MachineError) as caught:
        load_target("a6")
    assert caught.value.message == "A machine must be a name or the path of a TOML file, not 'a6'."
    assert caught.value.hint == "valid here: a5, a5-vendor-sim"
    with pytest.raises(MachineError, match="must be readable, which it is not"):
        load_target(tmp_path / "none.toml")
    with pytest.raises(MachineError, match="must be readable, which it is not"):
        load_target(tmp_path)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("l1_bytes", "262144", 262144),
        ("l1_bytes", "0x40000", 262144),
        ("l1_bytes", "256KiB", 262144),
        ("l2_bytes", "1MiB", 1 << 20),
        ("l2_bytes", " 1.5 MiB ", 3 << 19),
        ("l2_bytes", "2GiB", 1 << 31),
        ("l2_bytes", "0KiB", 0),
        ("scale_beat_bytes", "0.0625KiB", 64),
        ("clock_hz", "1.5e9", 1_500_000_000),
        ("hbm_bytes_per_cycle", "1000", 1000.0),
        ("drain_row_cycles", "4.25", 4.25),
        ("vector_casts", "E2M1*Float32", (("E2M1", "Float32"),)),
        ("mad_pairs", "E2M1*E2M1, E4M3*E5M2", (("E2M1", "E2M1"), ("E4M3", "E5M2"))),
    ],
)
def test_a_setting_is_read_from_text(field: str, text: str, value: object):
    changed = A5.with_settings({field: text}, source="set on the command line")
    assert getattr(changed, field) == value
    assert type(getattr(changed, field)) is type(value)
    assert changed.provenance[field] == Provenance("set on the command line", Status.ASSUMED)
    others = set(specs()) - {field}
    assert all(getattr(changed, other) == getattr(A5, other) for other in others)
    assert all(changed.provenance[other] == A5.provenance[other] for other in others)


VALID = "a size in bytes may have a unit of KiB, MiB, GiB, as in 256KiB"


@pytest.mark.parametrize(
    ("text", "shown", "hint"),
    [
        ("256KB", "'256KB'", f"did you mean 256KiB? {VALID}"),
        ("1.5 mb", "'1.5 mb'", f"did you mean 1.5MiB? {VALID}"),
        ("1G", "'1G'", f"did you mean 1GiB? {VALID}"),
        ("4096bytes", "'4096bytes'", VALID),
        ("KiB", "'KiB'", VALID),
        ("-1KiB", "'-1KiB'", VALID),
        ("1e3KiB", "'1e3KiB'", VALID),
        ("much", "'much'", VALID),
        ("17MiB", "'17MiB', which is 17825792", None),
        ("0.3KiB", "'0.3KiB', which is 307.2", None),
        ("1.01KiB", "'1.01KiB', which is 1034.24", None),
    ],
)
def test_a_size_with_another_unit_is_refused_with_those_that_there_are(
    tmp_path: Path, text: str, shown: str, hint: str | None
):
    message = f"l1_bytes must be an integer, 512 to 16777216, a multiple of 32, not {shown}."
    with pytest.raises(MachineError) as caught:
        A5.with_settings({"l1_bytes": text})
    assert (caught.value.message, caught.value.hint) == (message, hint)
    error = refusal(tmp_path, f'inherit = "a5"\nl1_bytes = "{text}"\n')
    assert (error.message, error.hint) == (message, hint)
    assert error.span == Span(str(tmp_path / "mine.toml"), 2, 1, 2, 9)


def test_a_file_gives_sizes_as_text_with_a_unit(tmp_path: Path):
    mine = machine(tmp_path, 'inherit = "a5"\nl1_bytes = "256 KiB"\n[l2_bytes]\nvalue = "32MiB"\n')
    assert (mine.l1_bytes, mine.l2_bytes) == (1 << 18, 1 << 25)
    assert "\nvalue = 33554432\n" in mine.to_toml()
    # A number that stands there as text is no size.
    assert refusal(tmp_path, 'inherit = "a5"\nl1_bytes = "262144"\n').hint == VALID


@pytest.mark.parametrize("field", ["cores", "flag_cycles", "clock_hz", "hbm_bytes_per_cycle"])
def test_only_a_size_has_a_unit_of_bytes(field: str):
    with pytest.raises(MachineError, match=f"^{field} must be a.* not '1KiB'"):
        A5.with_settings({field: "1KiB"})


@pytest.mark.parametrize("text", ["", "many", "1.5", "-1", "1e400", "nan", "0"])
def test_a_setting_that_is_impossible_is_refused(text: str):
    with pytest.raises(MachineError, match="cores must be an integer, 1 to 4096, not"):
        A5.with_settings({"cores": text})


def test_settings_may_be_values_and_none_change_nothing():
    assert A5.with_settings({"cores": 2}).cores == 2
    assert A5.with_settings({}) is A5
    with pytest.raises(MachineError, match="not 'core'"):
        A5.with_settings({"core": 2})


def test_the_digest_is_that_of_the_values(tmp_path: Path):
    renamed = machine(tmp_path, 'inherit = "a5"\ncores = 32\n')
    assert renamed.digest == A5.digest
    assert len(A5.digest) == 64
    digests = {A5.digest, A5.with_settings({"cores": 31}).digest}
    digests.add(A5.with_settings({"mad_pairs": "E4M3*E4M3"}).digest)
    assert len(digests) == 3


def test_records_are_equal_by_name_and_values_and_hash_alike():
    assert A5.with_settings({"cores": "32"}) == A5
    assert hash(A5.with_settings({"cores": "32"})) == hash(A5)
    assert A5.with_settings({"cores": 31}) != A5


def test_a_record_cannot_be_changed():
    with pytest.raises(AttributeError):
        A5.cores = 2  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        A5.provenance["cores"] = Provenance("", Status.ASSUMED)  # pyright: ignore[reportIndexIssue]


def test_the_cube_has_a_k_step_for_4_and_8_bits_only():
    assert (A5.mad_k_elements(4), A5.mad_k_elements(8)) == (64, 32)
    with pytest.raises(MachineError, match="elements of 4 or 8 bits, not 16"):
        A5.mad_k_elements(16)


def test_every_machine_file_of_the_page_is_one(tmp_path: Path):
    first, second = (
        machine(tmp_path, text) for text in re.findall(r"```toml\n(.*?)```", page(), re.DOTALL)
    )
    assert (first.cores, first.l2_bytes) == (8, 1 << 26)
    assert second.mad_pairs == (("E2M1", "E2M1"), ("E4M3", "E4M3"))
    (on_the_command_line,) = re.findall(r"`--set mad_pairs=(\S+)`", page())
    changed = load_target().with_settings({"mad_pairs": on_the_command_line})
    assert changed.mad_pairs == second.mad_pairs


def test_the_page_names_the_fields_in_which_the_vendors_simulator_differs():
    (sentence,) = re.findall(r"^What differs from a5: (.*?)\. The table", page(), re.M)
    base, other = load_target("a5"), load_target("a5-vendor-sim")
    told = re.findall(r"`(\w+)` is (\S+), not (\S+?)(?:;|$)", sentence)
    assert [name for name, *_ in told] == [
        name for name in specs() if getattr(base, name) != getattr(other, name)
    ]
    for name, value, before in told:
        assert (str(getattr(other, name)), str(getattr(base, name))) == (value, before)


def test_the_page_is_what_the_record_generates():
    assert PAGE.read_text(encoding="utf-8") == page()
    assert "| `scale_beat_bytes` | 32 | a power of two, 1 to 64 |" in describe(A5)
