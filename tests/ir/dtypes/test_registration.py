"""Registration: complete or not at all, whatever fails and whoever races."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from scalebox.ir.dtypes import (
    BlockScaledDType,
    CompoundDType,
    DType,
    DTypeCategory,
    Level,
    SimpleDType,
)
from scalebox.ir.dtypes.registry import REGISTRY, Registry

new_class: Any = type(DType)
KINDS = (DTypeCategory, SimpleDType, CompoundDType, BlockScaledDType)


class LateError(Exception):
    """What the constructors of this file fail with."""


def arguments(kind: type, block: int) -> dict[str, Any]:
    if kind is BlockScaledDType:
        return {"element": DType.E4M3, "levels": [Level(DType.E8M0, block)]}
    if kind is CompoundDType:
        return {"simple_types": [DType.Float32]}
    if kind is SimpleDType:
        return {"bits": 8, "supertype": DType.Floating}
    return {}


def concrete(kind: type, **namespace: Any) -> Any:
    return new_class("Extension", (kind,), {"__slots__": (), **namespace}, abstract=False)


@pytest.mark.parametrize("kind", KINDS)
def test_r11_a_constructor_that_fails_late_leaves_name_and_structure_free(
    kind: Any, fresh: Any, fresh_block: Any
) -> None:
    kept: list[DType] = []

    def init(self: Any, *args: Any, **keywords: Any) -> None:
        kind.__init__(self, *args, **keywords)
        kept.append(self)
        raise LateError

    def extension(self: Any) -> tuple[object, ...]:
        kept.append(self)
        raise LateError

    name, given = fresh(), arguments(kind, fresh_block())
    for failing in (concrete(kind, __init__=init), concrete(kind, structure_extension=extension)):
        with pytest.raises(LateError):
            failing(name, **given)
        with pytest.raises(LookupError):
            DType.from_name(name)
    for rejected in kept:
        assert not REGISTRY.holds(rejected)
        with pytest.raises(AttributeError):
            rejected.structure()
        with pytest.raises(ValueError, match="must be registered to be pickled"):
            rejected.__reduce__()
    made = concrete(kind)(name, **given)
    assert DType.from_name(name) is made


def test_r11_a_refused_descriptor_stays_refused(fresh: Any) -> None:
    kept: list[Any] = []

    class Keeps(DTypeCategory, abstract=False):
        __slots__ = ()

        def __init__(self, name: str) -> None:
            super().__init__(name)
            kept.append(self)

    with pytest.raises(ValueError, match="registered already"):
        Keeps("Floating")
    with pytest.raises(ValueError, match="must be a registered dtype"):
        SimpleDType(fresh(), bits=8, supertype=kept[0])
    assert DType.from_name("Floating") is DType.Floating


@pytest.mark.parametrize("table", ["_by_name", "_identities", "_holders"])
def test_r11_an_interrupted_publication_is_undone(
    table: str, fresh: Any, fresh_block: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(dict[Any, Any]):
        def __setitem__(self, key: object, value: object) -> None:
            raise LateError

        def add(self, value: object) -> None:
            raise LateError

        def discard(self, value: object) -> None:
            pass

    kept: list[Any] = []

    class Keeps(BlockScaledDType, abstract=False):
        __slots__ = ()

        def __init__(self, name: str, block: int) -> None:
            super().__init__(name, element=DType.E4M3, levels=[Level(DType.E8M0, block)])
            kept.append(self)

    name, block = fresh(), fresh_block()
    original: Any = getattr(REGISTRY, table)
    content: Any = dict.fromkeys(original)
    content |= original if table != "_identities" else {}
    with monkeypatch.context() as patch:
        patch.setattr(REGISTRY, table, Failing(content))
        with pytest.raises(LateError):
            Keeps(name, block)
    assert not hasattr(kept[0], "_structure")
    assert not REGISTRY.holds(kept[0])
    made = BlockScaledDType(name, element=DType.E4M3, levels=[Level(DType.E8M0, block)])
    assert DType.from_name(name) is made


def test_an_unfinished_descriptor_cannot_be_found(fresh: Any) -> None:
    reached, proceed = threading.Event(), threading.Event()

    class Slow(SimpleDType, abstract=False):
        __slots__ = ()

        def __init__(self, name: str) -> None:
            super().__init__(name, bits=8, supertype=DType.Floating)
            reached.set()
            assert proceed.wait(timeout=10)

    name, made = fresh(), list[DType]()
    thread = threading.Thread(target=lambda: made.append(Slow(name)))
    thread.start()
    try:
        assert reached.wait(timeout=10)
        with pytest.raises(LookupError):
            DType.from_name(name)
    finally:
        proceed.set()
        thread.join(timeout=10)
    assert DType.from_name(name) is made[0]


def race(*targets: Callable[[], object]) -> tuple[list[Any], list[ValueError]]:
    """Run each target in a thread of its own, all at once; return results and value errors."""
    barrier = threading.Barrier(len(targets))
    made, refused = list[Any](), list[ValueError]()

    def run(target: Callable[[], object]) -> None:
        barrier.wait()
        try:
            made.append(target())
        except ValueError as error:
            refused.append(error)

    threads = [threading.Thread(target=run, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()
    return made, refused


def test_of_many_that_race_for_a_name_one_gets_it(fresh: Any) -> None:
    for _ in range(20):
        name = fresh()
        make = partial(SimpleDType, name, bits=8, supertype=DType.Any)
        made, refused = race(*[make] * 6)
        assert len(made) == 1
        assert len(refused) == 5
        assert DType.from_name(name) is made[0]


def test_r54_of_many_that_race_for_a_representation_one_gets_it(
    fresh: Any, fresh_block: Any
) -> None:
    for _ in range(20):
        names = [fresh() for _ in range(6)]
        levels = (Level(DType.E8M0, fresh_block()),)
        made, refused = race(
            *(partial(BlockScaledDType, name, element=DType.E4M3, levels=levels) for name in names)
        )
        assert len(made) == 1
        assert len(refused) == 5
        assert DType.from_name(made[0].name) is made[0]
        found = {name for name in names if any(d.name == name for d in DType.registered())}
        assert found == {made[0].name}


def test_no_thread_comes_between_the_check_and_the_entry(
    fresh: Any, fresh_block: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_taken: Any = vars(Registry)["_refuse_taken"]

    def refuse_slowly(*args: Any) -> None:
        refuse_taken(*args)
        time.sleep(0.02)

    monkeypatch.setattr(Registry, "_refuse_taken", refuse_slowly)
    name, levels = fresh(), (Level(DType.E8M0, fresh_block()),)
    made, refused = race(*[partial(DTypeCategory, name)] * 4)
    assert (len(made), len(refused)) == (1, 3)
    scaled = partial(BlockScaledDType, element=DType.E4M3, levels=levels)
    made, refused = race(*(partial(scaled, fresh()) for _ in range(4)))
    assert (len(made), len(refused)) == (1, 3)
