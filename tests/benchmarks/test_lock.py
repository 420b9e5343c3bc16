"""What got slower, and which commit did it, of figures that are made up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import bisect, lock
from benchmarks.bisect import Found, first_slow, told
from benchmarks.lock import Figures, read_lock, slower, write_lock
from nanoloom.errors import Error

KEY = "mlp f32, threads: 2"
KEPT = Figures(0.5, 10.0, 200, "abc1234")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Figures(0.5, 10.0, 200, ""), []),
        (Figures(0.53, 12.0, 205, ""), []),
        (Figures(0.4, 1.0, 100, ""), []),
        (Figures(None, 10.0, 200, ""), []),
        (Figures(0.6, 10.0, 200, ""), ["fastest peer's was 0.5 and is 0.6 (1.20"]),
        (
            Figures(0.5, 20.0, 250, ""),
            ["to compile was 10 s and is 20 s", "memory was 200 MB and is 250 MB"],
        ),
    ],
)
def test_what_got_slower(found: Figures, words: list[str]) -> None:
    said = slower({KEY: KEPT, "other": KEPT}, {KEY: found})
    assert len(said) == len(words)
    for sentence, part in zip(said, words, strict=True):
        assert part in sentence and sentence.startswith(f"{KEY}: ")
        assert "since abc1234; python -m benchmarks bisect mlp --figure " in sentence


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    assert read_lock(path) == {}
    locked = {"znver5": {KEY: KEPT, "a": Figures(None, 1.0, 2, "d")}, "b": {KEY: KEPT}}
    write_lock(locked, path)
    assert read_lock(path) == locked
    assert len(path.read_text().splitlines()) == 9
    path.write_text('{"znver5": {"mlp": {"speed": 3}}}')
    with pytest.raises(Error, match="is no lock"):
        read_lock(path)


def test_the_lock_that_is_kept_is_one() -> None:
    for models in read_lock(lock.LOCK).values():
        for key, figures in models.items():
            assert ", threads: " in key and figures.compile_seconds > 0


@pytest.mark.parametrize("place", range(1, 12))
@pytest.mark.parametrize("lost", [(), (3, 4, 8)])
def test_halving_finds_the_commit(place: int, lost: tuple[int, ...]) -> None:
    """Wherever it is, with few measurements; what does not run is passed over."""
    asked: list[int] = []

    def measure(commit: str) -> float | None:
        asked.append(int(commit))
        return None if int(commit) in lost else 1.0 if int(commit) < place else 1.3

    found = first_slow([str(i) for i in range(12)], measure, 1.08)
    passed = {int(commit) for commit in found.passed_over}
    assert passed <= set(lost) and (int(found.commit) == place or place in passed)
    assert (found.before, found.figure) == (1.0, 1.3)
    assert len(asked) == len(set(asked)) <= 6 + len(lost)


def test_ends_that_do_not_differ() -> None:
    with pytest.raises(Error, match=r"b is not slower than a: 1\.05 beside 1"):
        first_slow(["a", "b"], lambda x: 1.0 if x == "a" else 1.05, 1.08)
    with pytest.raises(Error, match="commit b cannot be measured"):
        first_slow(["a", "b"], lambda x: 1.0 if x == "a" else None, 1.08)


def test_a_planted_slowdown_is_found(tmp_path: Path) -> None:
    """In a repository of its own, each commit in a worktree that goes again."""

    def git(*words: str) -> str:
        own = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=0"]
        return bisect.git(tmp_path, *own, *words)

    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    for number, seconds in enumerate(("2", "2", "3.5", "3.5")):
        (tmp_path / "speed").write_text(seconds)
        git("add", "-A")
        git("commit", "--quiet", "--allow-empty", "-m", f"change {number}")
    first = git("rev-list", "--max-parents=0", "HEAD")
    commits = bisect.commits_between(tmp_path, first, "HEAD")
    assert len(commits) == 4 and commits[0] == first

    def measure(commit: str) -> float | None:
        def read(folder: Path) -> float:
            return float((folder / "speed").read_text())

        return bisect.in_worktree(tmp_path, commit, read)

    found = first_slow(commits, measure, 1.08)
    line = git("log", "-1", "--format=%s", found.commit)
    assert told(found, "ratio", line) == "ratio 2 became 3.5 with\nchange 2"
    assert len(git("worktree", "list").splitlines()) == 1
    with pytest.raises(Error, match="is not in front of"):
        bisect.commits_between(tmp_path, "HEAD", first)
    with pytest.raises(Error, match="git rev-parse"):
        bisect.git(tmp_path, "rev-parse", "--verify", "nothing")


def test_what_could_not_be_measured_is_told() -> None:
    said = told(Found("c" * 40, 1.0, 2.0, ("d" * 40,)), "megabytes", "ccc change")
    assert said.endswith("or one of 1 before it, not to be measured: ddddddddd")


@pytest.mark.parametrize(
    ("figure", "wanted"), [("ratio", 2.0), ("compile_seconds", 3), ("megabytes", 90)]
)
def test_figures_of_rows(figure: str, wanted: float) -> None:
    times = {"nanoloom": 8.0, "onnxruntime": 4.0, "openvino": 6.0}
    row = {"milliseconds": times, "compile_seconds": 3, "megabytes": {"peak": 90}}
    assert bisect.figure_of(row, figure) == wanted
    assert bisect.figure_of(row | {"milliseconds": {"nanoloom": 1.0}}, "ratio") is None
