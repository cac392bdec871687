"""Tensor streams, read as they arrive and bounded by what has arrived."""

import io
import tracemalloc
from pathlib import Path
from random import Random

import pytest

from scalebox.traces import hurray

from .generated import tensor


def stream(*seeds: int) -> bytes:
    with hurray.StreamWriter() as writer:
        for seed in seeds:
            writer.write(tensor(hurray, Random(seed)))
    return writer.getvalue()


def test_a_stream_is_descriptors_and_buffers_without_padding() -> None:
    made = tensor(hurray, Random(5))
    buffers = [bytes(made.buffer(n)) for n in range(made.buffer_count)]
    assert stream(5) == b"".join([made.descriptor.encode(), *buffers])
    assert stream() == b""


def test_every_source_gives_the_same_tensors(tmp_path: Path) -> None:
    data = stream(*range(10))
    path = tmp_path / "stream"
    path.write_bytes(data)

    class OneByteAtATime(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(1, size or 0))

    for source in (data, bytearray(data), path, str(path), io.BytesIO(data), OneByteAtATime(data)):
        with hurray.StreamReader(source) as reader:
            found = list(reader)
        assert [t.descriptor for t in found] == [
            tensor(hurray, Random(seed)).descriptor for seed in range(10)
        ]


def test_a_stream_is_written_to_paths_and_files(tmp_path: Path) -> None:
    path = tmp_path / "stream"
    for destination in (path, io.BytesIO()):
        with hurray.StreamWriter(destination) as writer:
            writer.write(tensor(hurray, Random(3)))
        written = (
            destination.getvalue()
            if isinstance(destination, io.BytesIO)
            else destination.read_bytes()
        )
        assert written == stream(3)
        with pytest.raises(hurray.StreamError, match="must be built in memory to be returned"):
            writer.getvalue()


def test_a_stream_that_ends_early_is_refused_at_every_byte() -> None:
    first, data = len(stream(1)), stream(1, 2)
    for length in range(1, len(data)):
        reader = hurray.StreamReader(data[:length])
        if length >= first:
            next(reader)
        if length == first:
            assert list(reader) == []
        else:
            with pytest.raises(hurray.InvalidDescriptorError) as caught:
                next(reader)
            assert caught.value.offset is not None
            assert caught.value.offset <= length


def test_a_bad_descriptor_is_refused_with_its_offset_in_the_stream() -> None:
    first = len(stream(1))
    with pytest.raises(hurray.InvalidDescriptorError, match=f"At byte {first}: .*magic"):
        list(hurray.StreamReader(stream(1) + b"NOT A DESCRIPTOR"))


def test_limits_are_held() -> None:
    made = hurray.Tensor(bytes(100), hurray.uint8, [100])
    with hurray.StreamWriter() as writer:
        writer.write(made)
    data = writer.getvalue()
    with pytest.raises(hurray.StreamError, match="A buffer of a stream must have at most 99"):
        list(hurray.StreamReader(data, max_buffer_bytes=99))
    with pytest.raises(hurray.StreamError, match="A descriptor of a stream must have at most 52"):
        list(hurray.StreamReader(data, max_descriptor_bytes=52))
    assert len(list(hurray.StreamReader(data, max_buffer_bytes=100))) == 1


def test_a_promise_of_bytes_costs_no_memory() -> None:
    made = hurray.Tensor(bytes(100), hurray.uint8, [100])
    data = bytearray(made.descriptor.encode())
    data[37:45] = (1 << 62).to_bytes(8, "little")
    tracemalloc.start()
    try:
        with pytest.raises(hurray.StreamError, match="must have 4611686018427387904 bytes"):
            list(hurray.StreamReader(bytes(data)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hurray.StreamError, match="must be a stream that can be opened"):
        hurray.StreamReader(tmp_path / "missing")
    with pytest.raises(hurray.FieldTypeError, match="must be a path or a binary file, not int"):
        hurray.StreamReader(7)  # type: ignore[arg-type]
