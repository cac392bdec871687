"""`python -m scalebox.rtl.synthesis`: write the synthesis report anew."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...ir.errors import UserError
from ...traces.whole import written_whole
from .page import COMMAND, PAGE, page


def main() -> int:
    """Write the report and return the exit status."""
    parser = argparse.ArgumentParser(
        prog=COMMAND,
        description="Synthesise every unit and write the report. Figures of a netlist that were "
        "taken once are kept; those of a new one take up to minutes.",
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=Path(PAGE))
    output: Path = parser.parse_args().output
    try:
        text = page()
        with written_whole(output) as path:
            path.write_text(text, encoding="utf-8")
    except UserError as error:
        print(error.render(), file=sys.stderr)
        return 2
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
