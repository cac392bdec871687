"""`python -m scalebox.rtl.formal [NAME...]`: run the proofs whose names start so, print a summary."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from .check import MissingProverError
from .plan import PROOFS

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run proofs and return the exit status: 0 if there were some and every one passed."""
    names = ", ".join(proof.name for proof in PROOFS)
    parser = argparse.ArgumentParser(
        prog="python -m scalebox.rtl.formal",
        description="Run the proofs about the circuits, and print a summary.",
        epilog=f"The proofs are {names}.",
    )
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="how the names of proofs start; all, if not given"
    )
    prefixes: list[str] = parser.parse_args(arguments).names
    for prefix in prefixes:
        if not any(proof.name.startswith(prefix) for proof in PROOFS):
            print(f"A name must start one of {names}, not {prefix}", file=sys.stderr)
            return 2
    chosen = [proof for proof in PROOFS if not prefixes or proof.name.startswith(tuple(prefixes))]
    failed = 0
    for proof in chosen:
        try:
            verdict = proof.run()
        except MissingProverError as error:
            print(error, file=sys.stderr)
            return 2
        failed += not verdict.is_proof
        print(f"{proof.name:28} {verdict} ({proof.inputs}; {proof.method})", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} proofs passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
