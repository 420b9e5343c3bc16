"""Write what is refused and what passes anew: `python -m tests.conformance.update`.

Runs the node tests whose name begins with one of the given words (all without), then
writes unsupported.json, nanoloom/cli/operators.json and docs/operators.md.  A case that
gives a wrong answer, or fails without a sentence, is a bug to mend: it is printed and
goes into no list.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance import records
from tests.conformance.cases import cases
from tests.conformance.survey import survey
from tests.conformance.unsupported import FILE, unsupported, write


def main(words: Sequence[str]) -> int:
    """The number of cases that are neither right nor refused."""
    prefixes = tuple(f"test_{word}" for word in words) or ("test_",)
    chosen = [name for name in cases() if name.startswith(prefixes)]
    old = unsupported() if FILE.exists() else {}
    reasons = {name: reason for name, reason in old.items() if name not in chosen}
    broken = 0
    with TemporaryDirectory(prefix="nanoloom-") as root:
        for done, verdict in enumerate(survey(chosen, Path(root)), 1):
            if verdict.status == "refused":
                reasons[verdict.name] = verdict.reason
            elif not verdict.passed:
                broken += 1
                print(f"{verdict.status} {verdict.name}: {verdict.reason}", flush=True)
            if done % 100 == 0:
                print(f"{done} of {len(chosen)}", file=sys.stderr, flush=True)
    write({name: reason for name, reason in reasons.items() if name in cases()})
    records.write(unsupported())
    print(f"{len(cases()) - len(reasons) - broken} pass, {len(reasons)} are refused")
    return broken


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
