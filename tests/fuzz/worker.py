"""The child process: a case a line on its input, an outcome a line on its output."""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
import traceback
import warnings
from pathlib import Path

from nanoloom.errors import Error, InternalError
from tests.fuzz.cases import Bench, Finding, Outcome

MEMORY = 12 << 30  # bytes of addresses, so that a huge model cannot take the machine


def run_case(kind: str, seed: int, bench: Bench) -> Outcome:
    """One case; whatever it raises is a finding, and a warning of a bug."""
    from tests.fuzz.kinds import KINDS

    bench.begin(f"{kind} {seed}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", ".*a bug of nanoloom")
            return KINDS[kind](seed, bench)
    except Exception as error:  # noqa: BLE001 - the point: only Error may come out
        if isinstance(error, Error) and not isinstance(error, InternalError):
            told = f"{type(error).__name__}: {error}"
            return Outcome("refused", Finding("refused", told))
        place = bench.journal.read_text().splitlines()[1]
        text = f"while: {place}\n{traceback.format_exc()}"
        return Outcome("finding", Finding("foreign", text))


def main() -> None:
    """Answer on a copy of the standard output: libraries print on the other."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    bench = Bench(Path(sys.argv[1]))
    for line in sys.stdin:
        kind, seed = line.split()
        answers.write(run_case(kind, int(seed), bench).to_line() + "\n")


if __name__ == "__main__":
    main()
