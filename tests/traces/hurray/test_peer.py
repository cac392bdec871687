"""Our descriptors and files against the published implementation's, both ways."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

from scalebox.traces import hurray

from .generated import tensor

peer: Any = import_module("hurray")

SEEDS = range(400)


def pair(seed: int) -> tuple[Any, Any]:
    return tensor(hurray, Random(seed)), tensor(peer, Random(seed))


def test_400_descriptors_have_the_same_bytes() -> None:
    for seed in SEEDS:
        ours, theirs = pair(seed)
        assert ours.descriptor.encode() == theirs.descriptor.encode(), f"seed {seed}: {ours}"


def test_each_decodes_what_the_other_wrote() -> None:
    for seed in SEEDS:
        ours, theirs = pair(seed)
        data = theirs.descriptor.encode()
        assert hurray.Descriptor.decode(data) == ours.descriptor, f"seed {seed}"
        assert hurray.Descriptor.decode(data).encode() == data, f"seed {seed}"
        assert peer.Descriptor.decode(ours.descriptor.encode()) == theirs.descriptor, f"seed {seed}"


def test_what_is_read_is_what_the_peer_reads() -> None:
    names = ("shape", "ndim", "size", "byte_offset", "version", "encoded_len", "buffer_count")
    for seed in SEEDS:
        ours, theirs = (made.descriptor for made in pair(seed))
        assert [getattr(ours, n) for n in names] == [getattr(theirs, n) for n in names]
        assert (ours.dtype.tag, ours.layout.name) == (theirs.dtype.tag, theirs.layout.name)
        assert [h.byte_size for h in ours.buffer_handles] == [
            h.byte_size for h in theirs.buffer_handles
        ]
        for name in hurray.Statistics.names:
            if ours.statistics is not None:
                assert ours.statistics.get(name) == getattr(theirs.statistics, name)


def test_the_element_types_are_those_of_the_peer() -> None:
    properties = (
        "tag", "name", "bit_width", "tier", "element_alignment", "is_float", "is_integer",
        "is_signed", "is_sub_byte", "is_array_api",
    )  # fmt: skip
    for name in peer.dtype.__all__:
        ours, theirs = getattr(hurray.dtype, name), getattr(peer.dtype, name)
        for what in properties:
            assert getattr(ours, what) == getattr(theirs, what), (name, what)
        assert repr(ours) == repr(theirs)
    private = hurray.Dtype.from_tag(0xF7)
    assert repr(private) == repr(peer.Dtype.from_tag(0xF7)) == "hurray.Dtype.from_tag(0xF7)"
    assert (str(private), private.tier, private.element_alignment) == ("extension", 2, 1)


def test_tags_without_a_type_are_those_of_the_peer() -> None:
    for tag in range(256):
        known = True
        try:
            peer.Dtype.from_tag(tag)
        except peer.InvalidDescriptorError:
            known = False
        if known:
            assert hurray.Dtype.from_tag(tag).tag == tag
        else:
            with pytest.raises(hurray.InvalidDescriptorError):
                hurray.Dtype.from_tag(tag)


def test_sizes_are_those_of_the_peer() -> None:
    for name in peer.dtype.__all__:
        for count in (0, 1, 2, 3, 4, 5, 7, 8, 9, 1000):
            ours = hurray.buffer_size_bytes(getattr(hurray.dtype, name), count)
            assert ours == peer.buffer_size_bytes(getattr(peer.dtype, name), count), (name, count)


@pytest.mark.parametrize("seed", range(8))
def test_files_have_the_same_bytes(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    seeds = {f"t{n}/é": rng.getrandbits(32) for n in range(seed)}
    kv = {
        "text": "µ", "empty": "", "i": -seed, "f": 0.5, "yes": True, "raw": bytes(seed),
        "ints": [1, -2], "texts": ["a", ""], "flags": [True, False], "floats": [0.5],
    }  # fmt: skip
    given = kv if seed % 2 else None
    ours, theirs = tmp_path / "ours.hrry", tmp_path / "theirs.hrry"
    hurray.save(ours, {n: tensor(hurray, Random(s)) for n, s in seeds.items()}, given)
    peer.save(str(theirs), {n: tensor(peer, Random(s)) for n, s in seeds.items()}, kv=given)
    assert ours.read_bytes() == theirs.read_bytes()
    assert hurray.load_kv(theirs) == peer.load_kv(str(ours)) == (given or {})


def test_files_that_we_write_load_in_the_peer_with_equal_bytes_and_the_reverse(
    tmp_path: Path,
) -> None:
    ours, theirs = tmp_path / "ours.hrry", tmp_path / "theirs.hrry"
    seeds = [str(seed) for seed in range(60)]
    hurray.save(ours, {seed: tensor(hurray, Random(seed)) for seed in seeds})
    peer.save(str(theirs), {seed: tensor(peer, Random(seed)) for seed in seeds})
    read_here, read_there = hurray.load(theirs), peer.load(str(ours))
    assert list(read_here) == list(read_there) == seeds
    for seed in seeds:
        made = tensor(hurray, Random(seed))
        assert read_here[seed].descriptor == made.descriptor
        assert peer.Descriptor.decode(made.descriptor.encode()) == read_there[seed].descriptor
        for index in range(made.buffer_count):
            assert read_here[seed].buffer(index) == made.buffer(index)
            there = read_there[seed].buffer(index)
            assert bytes(memoryview(numpy_of(there))) == bytes(made.buffer(index))


def numpy_of(tensor: Any) -> Any:
    return tensor.__array__()


def test_streams_are_read_both_ways() -> None:
    ours, theirs = hurray.StreamWriter(), peer.StreamWriter()
    for seed in range(40):
        ours.write(tensor(hurray, Random(seed)))
        theirs.write(tensor(peer, Random(seed)))
    theirs.finish()
    assert ours.getvalue() == theirs.getvalue()
    assert [t.descriptor.encode() for t in peer.StreamReader(ours.getvalue())] == [
        t.descriptor.encode() for t in hurray.StreamReader(theirs.getvalue())
    ]


def test_composites_of_the_peer_are_carried(tmp_path: Path) -> None:
    members = [
        peer.Tensor(bytes(range(128)), peer.float32, [8, 4], shard=peer.Shard([8, 4], [0, 0]))
        for _ in range(2)
    ]
    made = peer.Composite(
        "overlay", shape=[8, 4], dtype=peer.float32, members=members, combine_op="add"
    )
    path = tmp_path / "composite.hrry"
    peer.save(str(path), {"c": made})
    loaded = hurray.load(path)
    assert list(loaded) == ["c", "c.0", "c.1"]
    assert loaded["c"].layout == hurray.CompositeLayout("overlay", 2, "add")
    assert (loaded["c"].buffer_count, loaded["c"].shape) == (0, (8, 4))
    roles = [loaded[name].descriptor.composite_role for name in ("c.0", "c.1")]
    assert roles == [hurray.CompositeRole.BASE, hurray.CompositeRole.CORRECTION]
    again = tmp_path / "again.hrry"
    hurray.save(again, loaded)
    assert peer.load(str(again))["c"].member_count == 2


LAYOUTS = [
    ("CooLayout(3, True)", [4, 4], [12, 48]),
    ("CsrLayout(3)", [4, 5], [12, 24, 40]),
    ("CscLayout(3)", [4, 5], [12, 24, 48]),
    ("CsfLayout(3, [2, 0, 1])", [4, 5, 6], [12, 24, 24, 24, 24, 24, 24]),
    ("BlockPagedLayout(4, 5, 0, 2, 'value', 7, 'uint64')", [20, 2, 3], [480, 40, 24]),
    ("BlockPagedLayout(4, 5, 0, 2, 'fused')", [20, 2, 3], [960, 40, 24]),
    ("MortonLayout([2, 2])", [4, 3], [64]),
    ("HilbertLayout(2, 2)", [4, 4], [64]),
]


@pytest.mark.parametrize(("text", "shape", "sizes"), LAYOUTS)
def test_other_layouts_are_carried_and_sized(text: str, shape: list[int], sizes: list[int]) -> None:
    def made(module: Any, sizes: list[int]) -> Any:
        first, *others = (bytes(size) for size in sizes)
        names: dict[str, Any] = module.__dict__
        layout = eval(text, names)
        return module.Tensor(first, module.float32, shape, layout=layout, aux_buffers=others)

    data = made(peer, sizes).descriptor.encode()
    assert made(hurray, sizes).descriptor.encode() == data
    assert hurray.Descriptor.decode(data).layout == eval(text, dict(vars(hurray)))
    assert hurray.Descriptor.decode(data).encode() == data
    with pytest.raises(hurray.BufferError, match=rf"at least {sizes[0]} bytes"):
        made(hurray, [sizes[0] - 1, *sizes[1:]])
    with pytest.raises(hurray.UnsupportedError, match="carried but not looked up"):
        made(hurray, sizes).numpy()


HOSTILE = """
import sys, hurray
try:
    hurray.load(sys.argv[1])
except BaseException as error:
    sys.exit(3)
"""


def test_a_huge_index_count_that_ends_the_peer_is_refused_here(tmp_path: Path) -> None:
    path = tmp_path / "hostile.hrry"
    hurray.save(path, {})
    data = bytearray(path.read_bytes())
    data[12] = 0  # no checksum, which would catch the change
    data[64:72] = (1 << 60).to_bytes(8, "little")
    path.write_bytes(data)
    child = subprocess.run([sys.executable, "-c", HOSTILE, str(path)], capture_output=True)
    assert child.returncode != 0
    with pytest.raises(hurray.InvalidFileError, match=r"^At byte 64: .* must be at most 0, not"):
        hurray.load(path)
