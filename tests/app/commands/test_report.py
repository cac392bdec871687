"""`scalebox report`: where cycles went, as text and as JSON, of a kernel and of a bundle."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalebox.app.account.flag_waits import FlagWait, flag_lines, flags_of
from scalebox.app.cli import main
from scalebox.codegen.isa.vocabulary import ClusterCore, Pipe

from ..shown import answer

Shown = pytest.CaptureFixture[str]
Kernel = Callable[..., str]


@pytest.fixture
def report(kernel: Kernel, capsys: Shown) -> dict[str, Any]:
    assert main(["report", kernel(32, 512, 64), "--json"]) == 0
    return answer(capsys)


def test_the_text_has_every_part_and_fits_80_columns(kernel: Kernel, capsys: Shown) -> None:
    assert main(["report", kernel(32, 512, 64)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "kernel.py: gemm on machine a5"
    assert max(map(len, shown)) <= 80
    for begin in (
        "cycles ", "roofline ", "bound ", "core  pipe ", "critical path", "longest stretches",
        "waits for flags", "moved ", "kernel ",
    ):  # fmt: skip
        assert any(line.startswith(begin) for line in shown), begin


def test_nothing_is_saved(kernel: Kernel, capsys: Shown) -> None:
    assert main(["report", kernel()]) == 0
    capsys.readouterr()
    assert [path.name for path in Path().iterdir()] == ["kernel.py"]


def test_the_accounts_add_up_to_the_work(report: dict[str, Any]) -> None:
    assert report["cores"] == ["0.AIC"]
    assert report["cycles"] == report["launch_cycles"] + report["work_cycles"]
    for share in report["shares"]:
        whole = share["busy"] + sum(share["waits"].values()) + share["idle"]
        assert whole == pytest.approx(1)
        kept = report["accounts"][0][share["pipe"]]
        assert kept["busy"] == share["busy_cycles"]
        assert sum(kept.values()) <= report["work_cycles"]


def test_the_longest_stretches_lie_in_the_run(report: dict[str, Any]) -> None:
    cycles = [each["cycles"] for each in report["segments"]]
    assert cycles == sorted(cycles, reverse=True)
    assert len(cycles) <= 10
    for each in report["segments"]:
        assert each["end"] - each["start"] == each["cycles"] > 0
        assert report["launch_cycles"] <= each["start"]
        assert each["end"] <= report["cycles"]
    assert any(each["source"].startswith("kernel.py:") for each in report["segments"])


def test_the_critical_path_is_the_work(report: dict[str, Any]) -> None:
    path = report["critical_path"]
    assert sum(each["cycles"] for each in path) <= report["work_cycles"]
    assert sum(each["share"] for each in path) > 0.9
    assert path == sorted(path, key=lambda each: -each["cycles"])


def test_no_run_beats_its_roofline(report: dict[str, Any]) -> None:
    roofline = report["roofline"]
    assert roofline["bounds"][roofline["binding"]] == roofline["cycles"]
    assert 0 < roofline["reached"] <= 1


def test_flag_waits_add_up_to_the_accounts(report: dict[str, Any]) -> None:
    waited = sum(each["cycles"] for each in report["flag_waits"])
    assert waited == sum(pipe["flag"] for pipe in report["accounts"][0].values())
    first = max(report["flag_waits"], key=lambda each: each["cycles"])
    assert first["flag"].split(" ")[0].endswith(f"->{first['pipe']}")
    assert first["set_by"].startswith("kernel.py:")


def test_flag_waits_come_in_the_order_of_what_they_cost_on_the_critical_path(
    report: dict[str, Any],
) -> None:
    """A flag costs what it has of the path, not what its pipe waits: that may be idle anyway."""
    waits = report["flag_waits"]
    assert waits == sorted(waits, key=lambda each: (-each["path_cycles"], -each["cycles"]))
    path = [each["cycles"] for each in report["critical_path"] if each["cause"] == "flag"]
    assert sum(each["path_cycles"] for each in waits) >= sum(path) > 0
    costly = [each["cycles"] for each in waits if each["path_cycles"]]
    idle = [each["cycles"] for each in waits if not each["path_cycles"]]
    assert min(costly) < max(idle)  # so that the sums alone would give another order


def test_the_path_crosses_every_flag_of_a_chain_and_none_of_a_pipe_that_waits_aside(
    kernel: Kernel, capsys: Shown
) -> None:
    """One step, one load after the other: the path goes MTE2, MTE1, M, FIX, and a flag takes 10 cycles."""
    assert main(["report", kernel(32, 64, 64), "--json", "--set", "flag_cycles=17"]) == 0
    waits = answer(capsys)["flag_waits"]
    crossed = {each["pipe"]: each["path_cycles"] for each in waits if each["path_cycles"]}
    assert crossed["M"] == crossed["FIX"] == crossed["MTE1"] == 17
    assert sum(each["path_cycles"] for each in waits) == 3 * 17


def test_every_flag_has_the_sums_of_its_lines(report: dict[str, Any]) -> None:
    named = ("core", "pipe", "flag")
    found = [tuple(each[key] for key in named) for each in report["flags"]]
    assert len(set(found)) == len(found)
    assert report["flags"] == sorted(
        report["flags"], key=lambda each: (-each["path_cycles"], -each["cycles"])
    )
    for flag, name in zip(report["flags"], found, strict=True):
        own = [each for each in report["flag_waits"] if tuple(each[key] for key in named) == name]
        assert flag["pairs_of_lines"] == len(own)
        for key in ("path_cycles", "cycles", "times"):
            assert flag[key] == sum(each[key] for each in own)


def wait(flag: str, at: int, set_at: int, path: int, cycles: int, times: int = 1) -> FlagWait:
    source = f"some/folder/kernel.py:{at}:9"
    return FlagWait(
        ClusterCore.AIC, Pipe.MTE1, flag, source, f"kernel.py:{set_at}:5", path, cycles, times
    )


def test_a_flag_is_a_line_with_the_pairs_of_lines_that_cost_most_below_it() -> None:
    waits = [
        wait("M->MTE1 0", 78, 100, 10, 20, 2),
        wait("MTE2->MTE1 0", 32, 24, 0, 5000, 32),
        wait("M->MTE1 0", 78, 81, 0, 4000, 30),
        wait("M->MTE1 0", 81, 100, 0, 1500),
        wait("M->MTE1 0", 82, 100, 0, 300),
        wait("M->MTE1 0", 83, 100, 0, 200),
        wait("M->MTE1 1", 78, 81, 0, 7, 3),
    ]
    assert list(flag_lines(flags_of(waits), 2)) == [
        "waits for flags, all cores   on path    cycles   times  at line, set at line",
        "AIC   MTE1 M->MTE1 0              10     6,020      35  5 pairs of lines:",
        "                                  10        20       2    kernel.py:78, 100",
        "                                   0     4,000      30    kernel.py:78, 81",
        "                                   0     1,500       1    kernel.py:81, 100",
        "                                   0       500       2    2 more",
        "AIC   MTE1 MTE2->MTE1 0            0     5,000      32  kernel.py:32, 24",
        "           1 more                  0         7       3",
    ]
    assert list(flag_lines(())) == []


@pytest.mark.parametrize(
    "options",
    [
        ("--warm",),
        ("--set", "cores=3", "--warm"),
        ("--seed", "7", "--checks", "off"),
        ("--max-cycles", "1000000"),
    ],
)
def test_a_report_takes_the_options_of_a_run_and_finds_its_cycles(
    options: tuple[str, ...], kernel: Kernel, capsys: Shown
) -> None:
    assert main(["run", kernel(), "--timing-only", "--json", *options]) == 0
    ran = answer(capsys)
    assert main(["report", "kernel.py", "--json", *options]) == 0
    found = answer(capsys)
    assert found["cycles"] == ran["cycles"]
    for name in ("params", "settings", "warm"):
        assert found[name] == ran[name]


def test_a_report_keeps_to_a_budget(kernel: Kernel, capsys: Shown) -> None:
    assert main(["report", kernel(), "--max-cycles", "5000"]) == 1
    assert "must end within 5000 cycles" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("run", "--timing-only"), ("report",)])
def test_what_was_changed_stands_below_the_title(
    command: tuple[str, ...], examples: Path, capsys: Shown
) -> None:
    assert examples.exists()
    call = [*command, "examples/mx_matmul.py"]
    assert main([*call, "--set", "cores=4", "--warm", "--param", "K=512"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1:3] == ["with     --param K=512 --set cores=4 --warm", ""]
    assert main(call) == 0
    assert capsys.readouterr().out.splitlines()[1] == ""


def test_many_changes_are_wrapped_between_options(kernel: Kernel, capsys: Shown) -> None:
    fields = ("l2_hit_cycles=201", "l2_miss_cycles=301", "scalar_cycles=2", "flag_cycles=11")
    options = [word for field in fields for word in ("--set", field)]
    assert main(["report", kernel(), *options]) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == [
        "with     --set l2_hit_cycles=201 --set l2_miss_cycles=301 --set scalar_cycles=2",
        "         --set flag_cycles=11",
    ]


@pytest.mark.parametrize("form", ["run1", "run1.hrry"])
def test_a_run_again_tells_what_the_bundle_says_was_changed(
    form: str, kernel: Kernel, capsys: Shown
) -> None:
    assert main(["run", kernel(), "--set", "cores=3", "--warm", "--out", form]) == 0
    for command in ("run", "report"):
        capsys.readouterr()
        assert main([command, form]) == 0
        assert capsys.readouterr().out.splitlines()[1] == "with     --set cores=3 --warm"


@pytest.mark.parametrize("form", ["run1", "run1.hrry"])
def test_a_bundle_is_reported_on_as_it_was_run(form: str, kernel: Kernel, capsys: Shown) -> None:
    call = ["run", kernel(32, 512, 64), "--set", "l2_miss_cycles=777", "--json", "--out", form]
    assert main(call) == 0
    ran = answer(capsys)
    assert main(["report", form, "--json"]) == 0
    found = answer(capsys)
    assert found["cycles"] == ran["cycles"]
    for name in ("shares", "critical_path", "roofline", "bottleneck", "empty_loops"):
        assert found[name] == ran[name]


def test_a_bundle_takes_no_options_of_a_run(kernel: Kernel, capsys: Shown) -> None:
    assert main(["run", kernel(), "--out", "run1"]) == 0
    assert main(["report", "run1", "--set", "cores=3"]) == 2
    assert "--set must go with a kernel or an executable" in capsys.readouterr().err


def test_what_is_no_kernel_is_refused(capsys: Shown, tmp_path: Path) -> None:
    assert main(["report", str(tmp_path / "nothing.py")]) == 2
    assert "Error" in capsys.readouterr().err


def test_the_run_command_tells_the_same(kernel: Kernel, capsys: Shown) -> None:
    assert main(["run", kernel(32, 512, 64), "--timing-only"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert main(["report", "kernel.py"]) == 0
    again = capsys.readouterr().out.splitlines()
    for begin in ("roofline", "bound", "critical path"):
        (one,) = [number for number, line in enumerate(shown) if line.startswith(begin)]
        (other,) = [number for number, line in enumerate(again) if line.startswith(begin)][:1]
        assert shown[one : one + 2] == again[other : other + 2]
