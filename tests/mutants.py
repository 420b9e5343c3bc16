"""Faults put into rooms of the package, one at a time: which of them do tests notice?

    make mutants ROOM=nanoloom/fusion COUNT=40 SEED=1

Faults are drawn (a comparison turned, `and` for `or`, a number moved by one, a branch
turned), each is put into a copy of the tree, and the tests that are nearest to its file
run until one fails.  What none notices is listed with its line.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.progress import Progress

ROOT = Path(__file__).parents[1]
COPIED = ("nanoloom", "tests", "papers", "benchmarks", "docs", "examples")
BESIDE = ("pyproject.toml", "Makefile", "README.md", "CONTRIBUTING.md", "LICENSE")
# Of cosmic-ray's operators, those that make another program that still runs.
OPERATORS = (
    *(f"ReplaceComparisonOperator_{x}" for x in ("Eq_NotEq", "NotEq_Eq")),
    *(
        f"ReplaceComparisonOperator_{x}"
        for x in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")
    ),
    *(f"ReplaceComparisonOperator_{x}" for x in ("Is_IsNot", "IsNot_Is")),
    *(f"ReplaceBinaryOperator_{x}" for x in ("Add_Sub", "Sub_Add", "Mul_FloorDiv")),
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "AddNot",
    "NumberReplacer",
)
MOST_FILES = 12  # of tests that run for a fault, the nearest first


@dataclass(frozen=True)
class Fault:
    """One fault: the file, cosmic-ray's operator and which of its places."""

    path: str
    operator: str
    occurrence: int


@dataclass(frozen=True)
class Outcome:
    """A fault with its changed lines; by: the test that fails, "" for none."""

    fault: Fault
    change: str
    by: str


def faults_of(path: Path) -> Iterator[Fault]:
    """All faults of a file, but for what is text for a reader."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    nodes = list(ast_nodes(get_ast(path.read_text("utf-8"))))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        for number in range(places):
            yield Fault(str(path.relative_to(ROOT)), f"core/{name}", number)


def mutated(fault: Fault) -> str:
    """The text of the file with the fault."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    text = (ROOT / fault.path).read_text("utf-8")
    made = mutate_code(text, get_operator(fault.operator)(), fault.occurrence)
    assert made is not None, fault
    return made


def changed_lines(fault: Fault, text: str) -> str:
    before = (ROOT / fault.path).read_text("utf-8").splitlines()
    pairs = enumerate(zip(before, text.splitlines(), strict=False), 1)
    found = [f"{fault.path}:{n}: {b.strip()}" for n, (b, a) in pairs if a != b]
    after = [
        a.strip() for b, a in zip(before, text.splitlines(), strict=False) if a != b
    ]
    return "; ".join([*found[:1], *(f"-> {x}" for x in after[:1])])


def imports_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    found = (n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom))
    return set(found)


def nearest(fault: Fault) -> list[str]:
    """The files of tests for a file: those that import it, those of its room."""
    module = fault.path.removesuffix(".py").replace("/", ".")
    room = "tests" / Path(*Path(fault.path).parent.parts[1:])
    stem = Path(fault.path).stem
    scored: list[tuple[int, str]] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        relative = path.relative_to(ROOT)
        names = imports_of(path)
        score = 4 * (stem in path.stem) + 3 * (module in names)
        score += 2 * (relative.parent == room)
        score += any(n.startswith(module.rpartition(".")[0]) for n in names)
        if score:
            scored.append((-score, str(relative)))
    return [name for _, name in sorted(scored)[:MOST_FILES]]


def tried(fault: Fault, seconds: int) -> Outcome:
    """The fault in a copy of the tree, and the tests that are nearest."""
    text = mutated(fault)
    try:
        done = with_file(fault.path, text, nearest(fault), seconds)
    except subprocess.TimeoutExpired:
        return Outcome(fault, changed_lines(fault, text), "no end")
    failed = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    by = (failed or ["does not start"])[0] if done.returncode else ""
    return Outcome(fault, changed_lines(fault, text), by)


def with_file(
    path: str, text: str, tests: list[str], seconds: int
) -> subprocess.CompletedProcess[str]:
    """Tests in a copy of the tree in which a file has another text."""
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            skip = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, Path(folder, name), ignore=skip)
        for name in BESIDE:
            shutil.copy(ROOT / name, folder)
        Path(folder, path).write_text(text, "utf-8")
        others = [x for x in sys.path if x and Path(x) not in (ROOT, ROOT / "papers")]
        paths = [folder, str(Path(folder, "papers")), *others]
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-n0", *tests],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


def require_tests() -> None:
    """That tests pass in a copy without a fault: else all would be noticed."""
    path = "nanoloom/errors.py"
    text = (ROOT / path).read_text("utf-8")
    done = with_file(path, text, ["tests/test_errors.py"], 300)
    if done.returncode:
        sys.exit(f"tests fail without a fault:\n{done.stdout}{done.stderr}")


def main(words: list[str]) -> int:
    """Draw, try, list; status 1 where a fault is not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("rooms", nargs="+", help="folders or files of the package")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=900, help="for one fault")
    parser.add_argument("--json", type=Path, help="all outcomes, for a program")
    given = parser.parse_args(words)
    require_tests()
    files = [
        path
        for room in given.rooms
        for path in (
            [ROOT / room] if room.endswith(".py") else (ROOT / room).rglob("*.py")
        )
    ]
    faults = [fault for path in sorted(files) for fault in faults_of(path)]
    drawn = random.Random(given.seed).sample(faults, min(given.count, len(faults)))
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(given.jobs) as pool, Progress() as progress:
        task = progress.add_task("faults", total=len(drawn))
        for each in pool.map(lambda fault: tried(fault, given.seconds), drawn):
            outcomes.append(each)
            if not each.by:
                progress.print(f"not noticed: {each.change}")
            progress.advance(task)
    missed = [each for each in outcomes if not each.by]
    print(f"{len(drawn) - len(missed)} of {len(drawn)} faults are noticed")
    if given.json:
        given.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
