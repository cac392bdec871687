"""Names and block sizes that no other test has used: the registry lasts as long as the process."""

import itertools
import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest

_numbers = itertools.count(1000)


@pytest.fixture
def fresh() -> Callable[[], str]:
    """A function that returns a new name with every call."""
    return lambda: f"Fresh{next(_numbers)}"


@pytest.fixture
def fresh_block() -> Callable[[], int]:
    """A function that returns a new block size with every call."""
    return lambda: next(_numbers)


@pytest.fixture
def in_another_process() -> Callable[[object, str, str], str]:
    """A function that loads an object's pickle in another process and reports on it.

    It takes the object, statements to run before loading, and an expression over `loaded` whose
    value is returned as text; an error is returned as its class and message.
    """

    def load(value: object, before: str, report: str) -> str:
        script = (
            "import pickle, sys\n"
            "from scalebox.ir.dtypes import *\n"
            f"{before}\n"
            "try:\n"
            "    loaded = pickle.loads(sys.stdin.buffer.read())\n"
            "except (LookupError, ValueError) as error:\n"
            "    kinds = [k.__name__ for k in (LookupError, ValueError) if isinstance(error, k)]\n"
            "    print(*kinds, error)\n"
            "else:\n"
            f"    print({report})\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            input=pickle.dumps(value),
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    return load
