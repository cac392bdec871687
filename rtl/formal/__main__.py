"""`python -m scalebox.rtl.formal [NAME...]`: run the proofs whose names start so, print a summary."""

from __future__ import annotations

import sys

from .check import MissingProverError
from .plan import PROOFS


def main(prefixes: list[str]) -> int:
    """Run proofs and return the exit status: 0 if there were some and every one passed."""
    chosen = [proof for proof in PROOFS if not prefixes or proof.name.startswith(tuple(prefixes))]
    if not chosen:
        names = ", ".join(proof.name for proof in PROOFS)
        print(f"A name must start one of {names}, not {' '.join(prefixes)}", file=sys.stderr)
        return 2
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
