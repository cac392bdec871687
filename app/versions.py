"""The versions that a result depends on."""

from __future__ import annotations

import platform
from importlib.metadata import version

_PACKAGES = ("scalebox", "numpy", "numba", "ml_dtypes")


def versions() -> dict[str, str]:
    """Return package name to version, Python included."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
