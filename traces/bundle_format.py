"""What both forms of a bundle have in common: their parts by name."""

from __future__ import annotations

from typing import Final

FORMAT: Final = "scalebox-bundle"
VERSION: Final = 1

MANIFEST: Final = "bundle.json"
"""Says that the rest is a bundle, and what it should be."""

ROLES: Final = ("inputs", "outputs", "golden")
"""What arrays are; inputs are always there."""

EXECUTABLE: Final = "executable.bin"
MACHINE: Final = "machine.toml"
PROGRAM: Final = "program.py"
OPTIONS: Final = "options.json"
TIMELINE: Final = "timeline.json"
SCALES: Final = "scales.npz"

MEMBERS: Final = (EXECUTABLE, MACHINE, PROGRAM, OPTIONS, TIMELINE, SCALES)
"""What is no array; options are always there."""
