"""Tensor files: how fast descriptors are decoded, and what it takes to read one tensor of a large file.

Run it as `python benchmarks/traces.py [--json]`. Beside our rate stands that of the published native
implementation over the same bytes. Decoding is measured in processor time on one core, reading in
the time on the wall with the file in the page cache; both are the best of a few tries. The large file
is 1 GiB of tensors, sparse on disk; memory is what the process has resident more than before.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from rows import Row, report, wants_json

from scalebox.traces import hurray
from scalebox.traces.hurray import file_format

TRIES = 5
DESCRIPTORS_PER_SECOND = 100_000
OPEN_SECONDS = 0.020
OPEN_MIB = 20.0

MIB = 1 << 20
TENSORS = 256
TENSOR_BYTES = 4 * MIB


def descriptors(count: int) -> dict[str, list[bytes]]:
    """Return `count` descriptors of each kind, no two alike, as bytes."""
    rng = Random(2)
    kinds: dict[str, Callable[[int], hurray.Descriptor]] = {
        "row_major": lambda n: dense([n, rng.randint(1, 4096)], hurray.float32),
        "private type": lambda n: dense(
            [n, rng.randint(1, 4096)],
            hurray.Dtype.from_tag(0xF2),
            extension_type=hurray.ExtensionType(24, is_signed=True),
        ),
        "MXFP": lambda n: scaled(n, 32 * rng.randint(1, 64)),
        "boxed scales": lambda n: dense(
            [16 * n, 2 * rng.randint(1, 64)],
            hurray.float8_e8m0,
            layout=hurray.TiledLayout([16, 2]),
        ),
    }
    return {kind: [make(1 + n).encode() for n in range(count)] for kind, make in kinds.items()}


def dense(shape: list[int], dtype: hurray.Dtype, **fields: Any) -> hurray.Descriptor:
    """Return the descriptor of a tensor with one buffer."""
    size = shape[0] * shape[1] * 4
    return hurray.Descriptor(dtype, tuple(shape), (hurray.BufferHandle(size),), **fields)


def scaled(rows: int, columns: int) -> hurray.Descriptor:
    """Return the descriptor of a tensor with elements and scales."""
    handles = (hurray.BufferHandle(rows * columns), hurray.BufferHandle(rows * columns // 32))
    return hurray.Descriptor(
        hurray.float8_e4m3, (rows, columns), handles, quantization=hurray.MXFP(1, 32, 1)
    )


def rate(decode: Callable[[bytes], object], encoded: list[bytes]) -> float:
    """Return how many descriptors a second of processor time decodes, at best."""
    times: list[float] = []
    for _ in range(TRIES):
        begin = time.process_time()
        for data in encoded:
            decode(data)
        times.append(time.process_time() - begin)
    return len(encoded) / min(times)


def decode_rows() -> list[Row]:
    """Return a row for each kind of descriptor, and one for all of them in turn."""
    peer: Any = import_module("hurray")
    kinds = descriptors(5_000)
    mixed = [data for group in zip(*kinds.values(), strict=True) for data in group]
    return [
        Row(
            name=f"decode, {kind}",
            unit="1/s",
            target=DESCRIPTORS_PER_SECOND,
            figure=rate(hurray.Descriptor.decode, encoded),
            beside={"native_peer": rate(peer.Descriptor.decode, encoded)},
        )
        for kind, encoded in {"all kinds in turn": mixed, **kinds}.items()
    ]


def write_large(path: Path) -> None:
    """Write a file of 1 GiB whose tensors are holes, but for the last one's first bytes."""
    entries: list[tuple[bytes, file_format.Entry]] = []
    columns = TENSOR_BYTES // 4 // 1024
    descriptor = hurray.Descriptor(
        hurray.float32, (1024, columns), (hurray.BufferHandle(TENSOR_BYTES),)
    ).encode()
    with path.open("wb") as file:
        file.write(file_format.encode_header())
        for number in range(TENSORS):
            at = file.tell()
            file.write(descriptor)
            page = file_format.PAGE_ALIGNMENT
            data_at = -(-file.tell() // page) * page
            file.seek(data_at + TENSOR_BYTES)
            entry = file_format.Entry(at, len(descriptor), data_at, TENSOR_BYTES)
            entries.append((f"tensor {number}".encode(), entry))
        index_at = file.tell()
        index = file_format.encode_index(entries)
        file.write(index)
        file.write(file_format.encode_trailer(index, index_at, b"", 0))


def read_one(path: Path) -> tuple[float, float]:
    """Return the seconds and the MiB that it takes to open a file and read one tensor of it."""
    before = resident_mib()
    begin = time.perf_counter()
    file = hurray.HurrayFile(path)
    codes = file[f"tensor {TENSORS - 1}"].codes()
    total = int(codes.sum())
    seconds = time.perf_counter() - begin
    assert total == 0
    return seconds, max(resident_mib() - before, 0.001)


def resident_mib() -> float:
    """Return the memory that the process has resident now, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


def file_rows() -> list[Row]:
    """Return the rows of the large file; every try is a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.hrry"
        write_large(path)
        size = path.stat().st_size
        tries: list[tuple[float, float]] = []
        for _ in range(TRIES):
            child = subprocess.run(
                [sys.executable, __file__, "--read", str(path)],
                capture_output=True,
                text=True,
                check=True,
            )
            seconds, mib = child.stdout.split()
            tries.append((float(seconds), float(mib)))
    beside = {"file_gib": size / (1 << 30), "tensor_mib": TENSOR_BYTES / MIB}
    return [
        Row(
            name="open 1 GiB, read a tensor",
            unit="s",
            target=OPEN_SECONDS,
            figure=min(seconds for seconds, _ in tries),
            less_is_better=True,
            beside=beside,
        ),
        Row(
            name="memory for that",
            unit="MiB",
            target=OPEN_MIB,
            figure=max(mib for _, mib in tries),
            less_is_better=True,
            beside=beside,
        ),
    ]


def main() -> None:
    """Measure and print; `--read FILE` is how a fresh process is asked for one reading."""
    if len(sys.argv) == 3 and sys.argv[1] == "--read":
        print(*read_one(Path(sys.argv[2])))
        return
    as_json = wants_json("Measure the decoding of descriptors and the reading of a large file.")
    report([*decode_rows(), *file_rows()], as_json=as_json)


if __name__ == "__main__":
    main()
