"""The table of pipes: one line each on one cluster, means and extremes on several."""

from scalebox.app.account.pipe_shares import WAITS, PipeShare
from scalebox.app.account.pipe_table import BAR_CELLS, table_lines
from scalebox.app.account.pipe_work import PIPE_WORK
from scalebox.codegen.isa.vocabulary import ClusterCore, Pipe


def share(
    core: ClusterCore, pipe: Pipe, busy: float, clusters: int = 1, spread: float = 0.0
) -> PipeShare:
    waits = dict.fromkeys(WAITS, 0.01)
    idle = 1 - busy - sum(waits.values())
    least, most = (busy - spread, 3), (busy + spread, 17)
    return PipeShare(
        core, pipe, PIPE_WORK[pipe], clusters, round(busy * 12_345_678), busy, waits, idle, least,
        most,
    )  # fmt: skip


def test_one_core_has_a_line_and_a_bar_a_pipe() -> None:
    shares = [share(ClusterCore.AIC, Pipe.MTE2, 0.9), share(ClusterCore.AIC, Pipe.M, 0.5)]
    lines = list(table_lines(shares, "#"))
    assert len(lines) == 1 + 2 + 2
    assert [line.count("#") for line in lines[1:3]] == [9, 5]
    assert " 90.0%" in lines[1]


def test_cores_of_a_cluster_have_headings() -> None:
    shares = [share(ClusterCore.AIC, Pipe.M, 0.5), share(ClusterCore.AIV0, Pipe.V, 0.5)]
    lines = list(table_lines(shares, "#"))
    assert lines[1] == "AIC, the cube core"
    assert lines[3] == "AIV0, the first vector core"


def test_many_clusters_are_one_table_with_the_extremes_named() -> None:
    shares = [
        share(core, pipe, 0.9 if pipe is Pipe.MTE2 else 0.5, clusters=32, spread=0.06)
        for core in (ClusterCore.AIC, ClusterCore.AIV0, ClusterCore.AIV1)
        for pipe in (Pipe.MTE2, Pipe.S)
    ]
    lines = list(table_lines(shares, "█"))
    assert len(lines) == 1 + 3 * 3 + 2 + 1
    assert max(map(len, lines)) <= 80
    assert lines[1] == "AIC, the cube core of 32 clusters, means"
    assert lines[2].endswith(" 84%-96%")
    assert lines[-1] == (
        "MTE2 is busiest in cluster 17, 96.0%, and least busy in cluster 3, 84.0%."
    )


def test_clusters_that_are_alike_have_a_bar() -> None:
    lines = list(table_lines([share(ClusterCore.AIC, Pipe.M, 0.5, clusters=4)], "#"))
    assert lines[1] == "AIC, the cube core of 4 clusters, means"
    assert lines[2].endswith(" #####")
    assert lines[-1] == "All 4 clusters keep M as busy."


def test_the_longest_lines_fit_80_columns() -> None:
    shares = [share(ClusterCore.AIV0, pipe, 0.94) for pipe in PIPE_WORK]
    lines = list(table_lines(shares, "█"))
    assert max(map(len, lines)) <= 80
    assert BAR_CELLS == 10
