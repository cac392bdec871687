"""No set, no wait and no flag of an example is there in vain, and the checks miss none of them."""

from pathlib import Path

import pytest

from scalebox.codegen.lower import Lowered, lower
from scalebox.ir.language.text import load_file

from ...codegen.mixed_kernels import judged_kernel
from .seeded import (
    FLAGS,
    MACHINE,
    executed,
    faults_of,
    instructions,
    linked,
    messages,
    without,
)

EXAMPLES = {
    path.stem: path for path in sorted((Path(__file__).parents[3] / "examples").glob("*.py"))
}
#: What makes the loops of an example run three times or more, where K=2048 does not.
FAMILY: dict[str, dict[str, str]] = {
    "layer_norm": {"M": "64"},
    "softmax": {"ROWS": "64"},
    "mx_epilogue": {"M": "128"},
    "fp4_cast": {"K": "128"},
    "mx_accumulate": {"K": "128"},
    "mx_auto_tile": {"K": "128"},
    "mx_compound": {"K": "128"},
    "mx_mixed_fp8": {"K": "128"},
    "quantise": {"K": "128"},
    "mxfp8_performance": {"M": "1024", "K": "6144", "N": "2048"},
    "mxfp4_performance": {"M": "1024", "K": "6144", "N": "2048"},
}
#: Checked with the fast tests; the others take longer.
FAST = ("layer_norm", "mx_accumulate", "mx_auto_tile", "mx_matmul", "softmax", "quantise")
#: Flags of an example, told by one of their instructions, that race in no member of its family, and why.
NEVER_RACING: dict[str, dict[int, str]] = {}

SLOW = [pytest.param(name, marks=pytest.mark.slow if name not in FAST else ()) for name in EXAMPLES]


def lowered(name: str, *, family: bool) -> Lowered:
    params = FAMILY.get(name, {"K": "2048"}) if family else {}
    return lower(load_file(EXAMPLES[name], params=params).program, MACHINE)


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("family", [False, True], ids=["as it stands", "looping"])
def test_each_set_and_each_wait_is_missed(name: str, family: bool) -> None:
    for kernel in lowered(name, family=family).executable.kernels:
        assert faults_of(kernel) == []
        ran = executed(kernel)  # as it stands, an example may have loops for larger sizes only
        assert (
            not family
            or {i for i, e in enumerate(instructions(kernel)) if e.mnemonic in FLAGS} <= ran
        )
        for index, each in enumerate(instructions(kernel)):
            if each.mnemonic in FLAGS and index in ran:
                assert faults_of(without(kernel, {index})), f"{each} at {index} of {kernel.name}"


@pytest.mark.parametrize("name", SLOW)
def test_without_a_flag_something_races(name: str) -> None:
    """A flag is all sets and waits that belong together: of a loop also those before and behind it."""
    made = lowered(name, family=True)
    for kernel in made.executable.kernels:
        for group in linked(judged_kernel(made, kernel, [0] * len(kernel.scalars)).pairs):
            if group & NEVER_RACING.get(name, {}).keys():
                continue
            found = messages(without(kernel, group))
            assert any("race for the same bytes" in each for each in found), (
                f"{sorted(group)} of {kernel.name}: {found[:1]}"
            )


@pytest.mark.parametrize("name", SLOW)
def test_without_a_set_and_its_wait_it_races_or_stands_still(name: str) -> None:
    """Of a flag that goes from trip to trip a set and its wait leave the others behind.

    Without the set in the loop and the last wait behind it, the second trip waits for ever, which is
    told as such; nothing races, since nothing runs. All other pairs race.
    """
    made = lowered(name, family=True)
    for kernel in made.executable.kernels:
        pairs = judged_kernel(made, kernel, [0] * len(kernel.scalars)).pairs
        for pair in sorted(pairs):
            found = messages(without(kernel, pair))
            one, other = pair
            carried = {(s, w) for s, w in pairs if (s == one) != (w == other)}
            if any("must be able to go on" in each for each in found):
                assert carried, f"{pair} of {kernel.name} is alone, and yet somebody waits"
            else:
                assert any("race for the same bytes" in each for each in found), pair
