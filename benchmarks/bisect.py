"""Find the commit that made a model slower: git worktrees, and halving.

    python -m benchmarks bisect MODEL [--figure ratio|compile_seconds|megabytes]
        [--good COMMIT] [--bad COMMIT] [--threads 1] [--precision f32]

good: a commit where it was fast; that of benchmarks/lock.json by default.  bad: HEAD
by default.  Each commit that is looked at is measured in a worktree of its own with its
own code; half way between the two ends, in ratio, is where slow begins.  A commit that
cannot be measured is passed over.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.arguments import parser_of
from benchmarks.lock import ALLOWED, key_of, machine_kind, read_lock
from benchmarks.results import ROOT
from nanoloom.errors import Error

Measure = Callable[[str], float | None]  # of a commit; None where it cannot be measured
Say = Callable[[str], None]


@dataclass(frozen=True)
class Found:
    """The first slow commit, with the figures of it and of the one before."""

    commit: str
    before: float
    figure: float
    passed_over: tuple[str, ...]  # between the two, not measured


def first_slow(commits: Sequence[str], measure: Measure, allowed: float) -> Found:
    """Halve the commits, the oldest first, of which the first is fast, the last slow.

    allowed: how many times the first one's figure is still fast.  Raises Error where
    the ends do not differ by more.
    """
    good, bad = 0, len(commits) - 1
    figures = {0: measure(commits[0]), bad: measure(commits[-1])}
    first, last = figures[0], figures[bad]
    if first is None or last is None:
        lost = commits[0] if first is None else commits[-1]
        raise Error(f"commit {lost} cannot be measured", hint="name another end")
    if not last > allowed * first:
        raise Error(
            f"{commits[-1]} is not slower than {commits[0]}: {last:.4g} beside "
            f"{first:.4g}, and up to {allowed:g} times is as fast"
        )
    limit, lost = math.sqrt(first * last), set[int]()
    while rest := [i for i in range(good + 1, bad) if i not in lost]:
        middle = rest[len(rest) // 2]
        found = measure(commits[middle])
        if found is None:
            lost.add(middle)
            continue
        figures[middle] = found
        if found > limit:
            bad = middle
        else:
            good = middle
    passed = tuple(commits[i] for i in range(good + 1, bad))
    return Found(commits[bad], figures[good] or 0.0, figures[bad] or 0.0, passed)


def commits_between(repository: Path, good: str, bad: str) -> list[str]:
    """Both and what lies on the first parents' line between, the oldest first."""
    if git(repository, "merge-base", good, bad) != git(repository, "rev-parse", good):
        raise Error(f"commit {good} is not in front of {bad}")
    listed = git(repository, "rev-list", "--first-parent", f"{good}..{bad}")
    return [git(repository, "rev-parse", good), *reversed(listed.split())]


def in_worktree(
    repository: Path, commit: str, work: Callable[[Path], float | None]
) -> float | None:
    """What `work` makes of a folder with the files of a commit, which goes again."""
    with tempfile.TemporaryDirectory(prefix="nanoloom-bisect-") as scratch:
        folder = Path(scratch, "tree")
        git(repository, "worktree", "add", "--detach", str(folder), commit)
        try:
            return work(folder)
        finally:
            git(repository, "worktree", "remove", "--force", str(folder))


def git(repository: Path, *words: str) -> str:
    """What git says; raises Error with its reason."""
    done = subprocess.run(
        ["git", "-C", str(repository), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise Error(lines[-1] if lines else "git fails", where=f"git {words[0]}")
    return done.stdout.strip()


def measured(folder: Path, given: argparse.Namespace, models: Path) -> float | None:
    """The figure of a commit's own code; None where it does not run."""
    output = folder.parent / "rows.json"
    words = ["--models", given.model, "--threads", str(given.threads)]
    words += ["--precision", given.precision, "--folder", str(models)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "whole_models", *words]
        + ["--json", str(output)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{folder / 'papers'}"},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode or not output.exists():
        return None
    rows = json.loads(output.read_text("utf-8"))["rows"]
    return figure_of(rows[0], given.figure) if rows else None


def figure_of(row: dict[str, dict[str, float]], figure: str) -> float | None:
    """Of a row that whole_models has written."""
    if figure == "megabytes":
        return row["megabytes"].get("peak")
    if figure == "compile_seconds":
        return row["compile_seconds"]  # type: ignore[return-value] - a number: whole_models wrote it
    times = dict(row["milliseconds"])
    own = times.pop("nanoloom", None)
    return own / min(times.values()) if own is not None and times else None


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("bisect", __doc__)
    parser.add_argument("model")
    parser.add_argument("--figure", choices=list(ALLOWED), default="ratio")
    parser.add_argument("--good", help="a commit where it was fast")
    parser.add_argument("--bad", default="HEAD", help="one where it is slow")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="f32")
    return parser.parse_args(arguments)


def good_of(given: argparse.Namespace) -> str:
    """The commit to begin with.  Raises Error where none is known."""
    if given.good:
        return given.good
    key = key_of(given.model, given.precision, given.threads)
    kept = read_lock().get(machine_kind(), {}).get(key)
    if kept is None:
        hint = "name a commit where it was fast: --good COMMIT"
        raise Error(f"benchmarks/lock.json has no {key} of this machine", hint=hint)
    return kept.commit


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    commits = commits_between(ROOT, good_of(given), given.bad)
    with tempfile.TemporaryDirectory(prefix="nanoloom-models-") as models:

        def measure(commit: str) -> float | None:
            found = in_worktree(
                ROOT, commit, lambda folder: measured(folder, given, Path(models))
            )
            said = "cannot be measured" if found is None else f"{found:.4g}"
            print(f"{commit[:9]}: {given.figure} {said}", flush=True)
            return found

        found = first_slow(commits, measure, ALLOWED[given.figure])
    print(told(found, given.figure, git(ROOT, "log", "-1", "--oneline", found.commit)))


def told(found: Found, figure: str, line: str) -> str:
    """The answer as a sentence or two."""
    said = f"{figure} {found.before:.4g} became {found.figure:.4g} with\n{line}"
    if found.passed_over:
        said += f"\nor one of {len(found.passed_over)} before it, not to be measured: "
        said += ", ".join(commit[:9] for commit in found.passed_over)
    return said
