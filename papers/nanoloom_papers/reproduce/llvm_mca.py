"""llvm-mca, which simulates a loop on a model of a CPU: what it is given, what it says.

LLVM has no model of tile registers: sixteen loads stand for a tile's load, and products
of tiles are left out.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence

from nanoloom.target import Target

# Newer ones know more cores.
MCA = (*(f"llvm-mca-{version}" for version in range(24, 14, -1)), "llvm-mca")
ROUNDS = 100
SECONDS = 60  # it takes one
TILE_ROWS = 16
TILE_LOAD = re.compile(r"^tileloaddt?1?\s+(\S*)\((%\w+)")
# Models in place of a CPU that an older LLVM does not know.
NEAREST = {"arrowlake-s": ("alderlake",)}


class Refused(Exception):
    """llvm-mca does not take a loop; the words say why."""


def newest() -> str | None:
    """The path of the newest llvm-mca that is installed."""
    return next(filter(None, map(shutil.which, MCA)), None)


def version_of(mca: str) -> str:
    made = subprocess.run(
        [mca, "--version"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    lines = [line.strip() for line in made.stdout.splitlines() if "version" in line]
    return f"llvm-mca: {lines[0]}" if lines else f"llvm-mca: {mca}"


def for_llvm_mca(loop: Sequence[str]) -> list[str]:
    """The loop with vector loads in place of tiles' loads, and without their products.

    A processor loads a tile row by row.
    """
    found: list[str] = []
    for line in loop:
        load = TILE_LOAD.match(line)
        if load:
            place = f"{load[1]}({load[2]})"
            rows = range(TILE_ROWS)
            found += [f"vmovups\t{place}, %zmm{16 + row}" for row in rows]
        elif not line.startswith("tdp"):
            found.append(line)
    return found


def simulate(mca: str, loop: Sequence[str], target: Target) -> tuple[str, float, float]:
    """The model that was used, the block's reciprocal throughput, cycles a round.

    Raises Refused, in one sentence, where llvm-mca does not take the loop.
    """
    text = "\n".join(for_llvm_mca(loop)) + "\n"
    for cpu in (target.cpu, *NEAREST.get(target.cpu, ())):
        words = [mca, "-json", f"-iterations={ROUNDS}", f"-mtriple={target.triple}"]
        made = subprocess.run(
            [*words, f"-mcpu={cpu}", "-"],
            input=text, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        if "is not a recognized processor" not in made.stderr:
            break
    else:
        raise Refused(f"llvm-mca has no model of {target.cpu}")
    if made.returncode or "error:" in made.stderr:  # it leaves out what it cannot read
        raise Refused(reason(made.stderr))
    return cpu, *cycles(made.stdout)


def cycles(text: str) -> tuple[float, float]:
    """What llvm-mca -json says: the block's reciprocal throughput, cycles a round."""
    summary = json.loads(text)["CodeRegions"][0]["SummaryView"]
    rounds = summary["Iterations"]
    return float(summary["BlockRThroughput"]), summary["TotalCycles"] / rounds


def reason(errors: str) -> str:
    """Why llvm-mca refused, from what it printed."""
    unknown = re.search(r"invalid instruction mnemonic '(\w+)'", errors)
    unmodelled = re.search(r"note: instruction:\s*(\w+)", errors)
    if unknown:
        return f"llvm-mca does not know {unknown[1]}"
    if unmodelled:
        return f"llvm-mca's model has no {unmodelled[1]}"
    first = next(iter(errors.splitlines()), "it said nothing")
    return f"llvm-mca refused: {first}"
