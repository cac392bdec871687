"""numba, loaded after a look at what the environment tells it: a mistake there is a sentence.

numba itself would end with a traceback, or go on without what was asked for after showing one; LLVM would
end the process.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from .errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_UNREADABLE = (
    r"Environment variable '(NUMBA_\w+)' is defined but its associated value '(.*)' could not"
)
"""How numba tells of a value that it cannot read."""

_STANDARD_ERROR = 2


def check_settings(environment: Mapping[str, str]) -> None:
    """Refuse what numba or LLVM would trip over.

    Args:
        environment: Name to value of the environment's variables.

    Raises:
        InputError: For the first value that is wrong.
    """
    for name, (is_right, wanted) in _RULES.items():
        value = environment.get(name, "")
        if value and not is_right(value):
            message = f"{name} must be {wanted}, not {value!r}"
            raise InputError(message)


def _is_count(text: str) -> bool:
    try:
        return int(text) >= 1
    except ValueError:
        return False


def _may_be_folder(text: str) -> bool:
    try:
        return Path(text).is_dir() or not Path(text).exists()
    except OSError:  # nobody may look there, and so neither may numba
        return True


def _are_features(text: str) -> bool:
    listed = [each for each in text.split(",") if each]
    return all(each[0] in "+-" for each in listed) and _is_known_to_llvm(features=text)


def _is_processor(text: str) -> bool:
    return _is_known_to_llvm(cpu=text)


def _is_known_to_llvm(**options: str) -> bool:
    """Return whether LLVM is silent about a processor: it complains to standard error, and to no caller."""
    from llvmlite import binding  # pyright: ignore[reportMissingTypeStubs]

    llvm: Any = binding
    llvm.initialize_native_target()
    try:
        kept = os.dup(_STANDARD_ERROR)
    except OSError:  # it is closed
        return True
    with TemporaryFile() as told:
        os.dup2(told.fileno(), _STANDARD_ERROR)
        try:
            llvm.Target.from_default_triple().create_target_machine(**options)
        finally:
            os.dup2(kept, _STANDARD_ERROR)
            os.close(kept)
        return told.seek(0, os.SEEK_END) == 0


_RULES: dict[str, tuple[Callable[[str], bool], str]] = {
    "NUMBA_NUM_THREADS": (_is_count, "a whole number from 1 on"),
    "NUMBA_CACHE_DIR": (_may_be_folder, "a folder"),
    "NUMBA_CPU_NAME": (_is_processor, "a processor that LLVM knows, such as generic"),
    "NUMBA_CPU_FEATURES": (
        _are_features,
        "features that LLVM knows, each with + or - in front, such as +avx2,-avx512f",
    ),
}
"""Name of a variable to what its value must pass, and what that is called."""


def _load() -> Any:
    check_settings(os.environ)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", _UNREADABLE, RuntimeWarning)
        try:
            import numba
        except RuntimeWarning as warning:
            found = re.match(_UNREADABLE, str(warning))
            if found is None:
                raise
            message = f"{found[1]} must be something that numba can read, not {found[2]!r}"
            raise InputError(message) from None
    return numba


numba: Any = _load()
"""The package."""
