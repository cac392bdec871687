"""Descriptors in other processes: resolved there by name and structure, never rebuilt."""

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

TAGGED = """
class Tagged(CompoundDType, abstract=False):
    def __init__(self, name, tag):
        super().__init__(name, simple_types=[DType.Float32])
        self.tag = tag
    def structure_extension(self):
        return (self.tag,)
"""


class Tagged(CompoundDType, abstract=False):
    """A compound with a tag in its structure."""

    def __init__(self, name: str, tag: object) -> None:
        super().__init__(name, simple_types=[DType.Float32])
        self.tag = tag

    def structure_extension(self) -> tuple[object, ...]:
        return (self.tag,)


def test_built_in_and_machine_dtypes_load_anywhere(in_another_process: Any) -> None:
    values = (DType.Float32, DType.NVFP4, DType.from_name("E1M2"), DType.Any)
    report = "[v is DType.from_name(v.name) for v in loaded], loaded[1] is DType.NVFP4"
    assert in_another_process(values, "", report) == "[True, True, True, True] True"


def test_an_extension_resolves_to_the_receiver_s_own(in_another_process: Any) -> None:
    element = SimpleDType("PickledElement", bits=5, supertype=DType.Floating)
    block = BlockScaledDType("PickledBlock", element=element, levels=[Level(DType.E8M0, 32)])
    tagged = Tagged("PickledTag", float("nan"))
    before = (
        "element = SimpleDType('PickledElement', bits=5, supertype=DType.Floating)\n"
        "block = BlockScaledDType('PickledBlock', element=element, levels=[Level(DType.E8M0, 32)])"
        f"\n{TAGGED}\ntagged = Tagged('PickledTag', float('nan'))"
    )
    report = "all(x is y for x, y in zip(loaded, (element, block, tagged)))"
    assert in_another_process((element, block, tagged), before, report) == "True"


def test_a_name_that_the_receiver_lacks_is_a_lookup_error(
    in_another_process: Any, fresh: Any
) -> None:
    dtype = SimpleDType(fresh(), bits=5, supertype=DType.Floating)
    answer = in_another_process(dtype, "", "loaded")
    assert answer.startswith(f"LookupError '{dtype.name}' must name a registered DType")


@pytest.mark.parametrize(
    ("value", "before", "difference"),
    [
        pytest.param(
            lambda: BlockScaledDType(
                "DiffersInWidth",
                element=SimpleDType("DiffersInWidthElement", bits=6, supertype=DType.Floating),
                levels=[Level(DType.E8M0, 32)],
            ),
            "BlockScaledDType('DiffersInWidth', levels=[Level(DType.E8M0, 32)], element="
            "SimpleDType('DiffersInWidthElement', bits=17, supertype=DType.Floating))",
            "int:0x6 where int:0x11 stands here",
            id="a plane's width",
        ),
        pytest.param(
            lambda: SimpleDType(
                "DiffersAbove", bits=6, supertype=DTypeCategory("DiffersAboveCategory")
            ),
            "SimpleDType('DiffersAbove', bits=6, supertype="
            "DTypeCategory('DiffersAboveCategory', opaque_storage=True))",
            "bool:False where bool:True stands here",
            id="a category above",
        ),
        pytest.param(
            lambda: Tagged("DiffersInTag", True),
            f"{TAGGED}\nTagged('DiffersInTag', 1)",
            "bool:True where int:0x1 stands here",
            id="the type of a tag",
        ),
        pytest.param(
            lambda: BlockScaledDType(
                "DiffersInBlock", element=DType.E4M3, levels=[Level(DType.E8M0, 700)]
            ),
            "BlockScaledDType('DiffersInBlock', element=DType.E4M3, levels=[Level(DType.E8M0, 701)])",
            "int:0x2bc where int:0x2bd stands here",
            id="a block",
        ),
    ],
)
def test_a_different_definition_under_the_same_name_is_a_value_error(
    value: Any, before: str, difference: str, in_another_process: Any
) -> None:
    answer = in_another_process(value(), before, "loaded")
    assert answer.startswith("ValueError The dtype 'Differs")
    assert difference in answer


def test_a_pickle_holds_a_name_and_a_structure_of_strings() -> None:
    function, arguments = DType.NVFP4.__reduce__()
    assert arguments == ("NVFP4", DType.NVFP4.structure())
    assert function(*arguments) is DType.NVFP4

    def leaves(value: object) -> list[type]:
        if isinstance(value, tuple):
            return [leaf for item in value for leaf in leaves(item)]  # type: ignore[reportUnknownVariableType]
        return [type(value)]

    assert set(leaves(arguments)) == {str}
