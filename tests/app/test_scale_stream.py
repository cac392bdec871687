"""Recorded box streams: what is kept, how it comes back from a file, and what a bad file gets."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.app.kernel_file import load_kernel_file
from scalebox.app.signature import entry_function
from scalebox.ir.errors import InputError
from scalebox.ir.target import load_target
from scalebox.sim.scales.file import stream_from_bytes, stream_to_bytes
from scalebox.sim.scales.stream import ScaleStream
from scalebox.sim.scales.wires import answer_trace

EXAMPLES = Path(__file__).parents[2] / "examples"


def recorded(name: str, **settings: int) -> scalebox.Result:
    target = load_target("a5").with_settings(settings)
    executable = scalebox.compile(load_kernel_file(EXAMPLES / name, {}).program, machine=target)
    inputs = draw_inputs(entry_function(executable.entry(None)), 0)
    return scalebox.run(executable, inputs, machine=target, record_scales=True)


@pytest.fixture(scope="module")
def stream() -> ScaleStream:
    found = recorded("mx_matmul.py").scales
    assert found is not None
    return found


@pytest.mark.parametrize("beat", [8, 16, 32])
@pytest.mark.parametrize("name", ["mx_matmul.py", "mx_fp4.py"])
def test_mads_take_as_long_as_on_the_machine(name: str, beat: int) -> None:
    result = recorded(name, scale_beat_bytes=beat)
    assert result.scales is not None
    on_machine = [each.end - each.start for each in result.timeline if each.name == "mad_mx"]
    assert result.scales.mad_cycles.tolist() == on_machine


def test_boxes_are_those_that_the_kernel_was_given(stream: ScaleStream) -> None:
    result = recorded("mx_matmul.py")
    scales = [
        np.asarray(given).view(np.uint8) for n, given in result.inputs.items() if "scale" in n
    ]
    given = {bytes(box) for each in scales for box in each.reshape(-1, 32)}
    kept = {bytes(box) for boxes in (stream.a_boxes, stream.b_boxes) for box in boxes}
    assert kept == given


def test_chunks_cover_every_mad_once(stream: ScaleStream) -> None:
    whole = next(stream.chunks(cycles=1 << 40)).trace
    for cycles in (1, 500):
        chunks = list(stream.chunks(cycles=cycles))
        assert len(chunks) > 1
        for name, array in whole.items():
            parts = np.concatenate([chunk.trace[name] for chunk in chunks])
            on_offer = whole.get(f"{name.partition('_')[0]}_valid", ...)
            if name.endswith(("_valid", "_ready")) or name.startswith(("a_req", "b_req", "o_")):
                on_offer = ...
            assert np.array_equal(array[on_offer], parts[on_offer])
    assert len(whole["a"]) == stream.cycles


def test_the_recorded_handshakes_are_those_of_the_unit(stream: ScaleStream) -> None:
    trace = next(stream.chunks()).trace
    for name, array in answer_trace(trace).items():
        assert np.array_equal(array, trace[name])


def test_a_cycle_belongs_to_a_mad(stream: ScaleStream) -> None:
    each = stream.mad_cycles.tolist()
    assert stream.mad_at(0) == (0, 0)
    assert stream.mad_at(each[0] - 1) == (0, each[0] - 1)
    assert stream.mad_at(each[0]) == (1, 0)


def test_the_file_gives_the_stream_back(stream: ScaleStream) -> None:
    data = stream_to_bytes(stream)
    assert stream_to_bytes(stream) == data
    again = stream_from_bytes(data)
    assert stream_to_bytes(again) == data
    assert again.around == stream.around
    assert len(data) < 20_000


def test_equal_boxes_are_kept_once() -> None:
    found = recorded("mx_auto_tile.py").scales
    assert found is not None
    beats = sum(int(each.trace["a_valid"].sum()) for each in found.chunks())
    assert len(found.mads) == 8  # two tiles of the result, four steps of K each
    assert len(found.a_boxes) < beats / 10


def _changed(stream: ScaleStream, **members: Any) -> bytes:
    with np.load(io.BytesIO(stream_to_bytes(stream))) as archive:
        kept = {name: archive[name] for name in archive.files}
    file = io.BytesIO()
    np.savez(file, **{n: a for n, a in (kept | members).items() if a is not None})
    return file.getvalue()


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"mads": None}, "must hold 'mads' as int64 .* which is missing"),
        ({"a_boxes": np.zeros((4, 31), np.uint8)}, "must hold 'a_boxes'"),
        ({"a_boxes": np.zeros((4, 32), np.uint8)}, "must agree"),
        ({"version": np.array(9, np.int64)}, "must be of version 1, not 9"),
        ({"surroundings": np.array([24, 1, 25])}, "must agree"),
        ({"surroundings": np.array([32, 0, 25])}, "must agree"),
        ({"cycles": np.array([1 << 62], np.int64)}, "must agree"),
        ({"answered": np.zeros(3, np.uint8)}, "must agree"),
        ({"shapes": np.array([[1, 1, 0, 0]], np.uint16)}, "must agree"),
        ({"mads": np.array([[0, 0, 0, 0, 7]], np.int64)}, "must agree"),
        ({"mads": np.array([[0, 0, -1, 0, 0]], np.int64)}, "must agree"),
    ],
)
def test_a_bad_file_is_refused(stream: ScaleStream, members: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        stream_from_bytes(_changed(stream, **members))


@pytest.mark.parametrize("data", [b"", b"PK", b"\x80\x04pickle", b"\x93NUMPY"])
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"must be an \.npz file"):
        stream_from_bytes(data)
