"""A file is scored by row groups: killed and continued, each once, nothing half."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nanoloom.errors import Error, InputError
from nanoloom.scoring import Scorer
from nanoloom.scoring.parquet import score_file
from tests.scoring import models

FORK = multiprocessing.get_context("fork")
GROUP = 30


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.mlp(tmp_path)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(models.table(135), path, row_group_size=GROUP)
    return path


def test_a_file_is_its_tables(model: Path, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    seen: list[tuple[int, int]] = []
    scorer = Scorer(model, keep=["id"], threads=2, batch_rows=1)
    report = score_file(scorer, rows, out, lambda *now: seen.append(now))
    assert pq.read_table(out).equals(scorer(models.table(135)))
    groups = pq.ParquetFile(out)
    assert groups.schema_arrow == scorer.schema(models.table(1).schema)
    sizes = [groups.metadata.row_group(i).num_rows for i in range(5)]
    assert sizes == [30, 30, 30, 30, 15]
    assert (report.rows, report.resumed, report.errors) == (135, 0, 0)
    assert seen[-1] == (135, 135) and seen == sorted(seen)
    assert {path.name for path in tmp_path.iterdir()} == {
        "mlp.onnx",
        "rows.parquet",
        "out.parquet",
    }


def test_what_cannot_begin_leaves_nothing(
    model: Path, rows: Path, tmp_path: Path
) -> None:
    """Also not of a pipe in its place, which a rename would end."""
    other, pipe = tmp_path / "other.parquet", tmp_path / "pipe"
    pq.write_table(pa.table({"q": [1.0, 2.0]}), other)
    os.mkfifo(pipe)
    before = {*tmp_path.iterdir()}
    with pytest.raises(InputError, match=r"no column '.*some that there are: q"):
        score_file(Scorer(model), other, tmp_path / "out.parquet")
    with pytest.raises(Error, match="cannot be written: it is a pipe or a device"):
        score_file(Scorer(model), rows, pipe)
    assert pipe.is_fifo() and {*tmp_path.iterdir()} == before


def _until(wire: Connection, model: Path, rows: Path, out: Path, stop: int) -> None:
    def advance(done: int, total: int) -> None:
        if done >= stop:
            wire.send(total)
            wire.recv()

    score_file(Scorer(model, keep=["id"], threads=1), rows, out, advance)


@pytest.mark.parametrize("stop", [1, 61, 135])
def test_a_killed_run_is_continued(
    model: Path, rows: Path, tmp_path: Path, stop: int
) -> None:
    out = tmp_path / "out.parquet"
    expected = Scorer(model, keep=["id"], threads=1)(models.table(135))
    here, there = FORK.Pipe()
    process = FORK.Process(
        target=_until, args=(there, model, rows, out, stop), daemon=True
    )
    process.start()
    assert here.recv() == 135 and process.pid is not None
    with pytest.raises(Error, match="another process is writing it"):
        score_file(Scorer(model), rows, out)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not out.exists()
    done = (stop - 1) // GROUP * GROUP  # the last one is not written yet
    report = score_file(Scorer(model, keep=["id"], threads=1), rows, out)
    assert report.resumed == done and report.rows == 135
    assert pq.read_table(out).equals(expected)
    assert not (tmp_path / "out.parquet.parts").exists()


def test_parts_of_another_run_are_refused(
    model: Path, rows: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_file(Scorer(model), rows, out, interrupt)
    for other in (Scorer(model, keep=["id"]), Scorer(model, level="x86-64-v2")):
        with pytest.raises(Error, match=r"another input, model or other options; rem"):
            score_file(other, rows, out)
    pq.write_table(models.table(135, seed=1), rows, row_group_size=GROUP)
    with pytest.raises(Error, match="another input"):
        score_file(Scorer(model), rows, out)


def test_rows_are_called_by_their_place_in_the_file(tmp_path: Path) -> None:
    model = models.words(tmp_path)
    lengths = [2] * 70
    ids = models.texts(lengths)
    ids[65][1] = 999
    path, out = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"ids": ids}), path, row_group_size=GROUP)
    with pytest.raises(InputError, match=r"row 65: .*999 is outside"):
        score_file(Scorer(model, mask="mask"), path, out)
    made = score_file(
        Scorer(model, mask="mask", errors="column"), path, out.with_name("b")
    )
    assert made.errors == 1
    reasons = pq.read_table(out.with_name("b"))["error"].to_pylist()
    assert [i for i, reason in enumerate(reasons) if reason] == [65]


def test_a_file_without_rows(model: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "none.parquet", tmp_path / "out.parquet"
    pq.write_table(models.table(1).slice(0, 0), path)
    assert score_file(Scorer(model), path, out).rows == 0
    assert pq.read_table(out).num_rows == 0 and "y" in pq.read_schema(out).names


Break = Callable[[Path], None]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: (path.unlink(), path.mkdir()), "is a folder; name a file"),
        (lambda path: path.write_bytes(b"no parquet at all"), "is no Parquet file"),
    ],
)
def test_what_is_no_file_of_rows(
    model: Path, rows: Path, tmp_path: Path, damage: Break, said: str
) -> None:
    damage(rows)
    with pytest.raises(Error, match=rf"rows.parquet: {said}"):
        score_file(Scorer(model), rows, tmp_path / "out.parquet")
    assert not list(tmp_path.glob("out*"))


def test_a_place_that_cannot_be_written(
    model: Path, rows: Path, tmp_path: Path
) -> None:
    with pytest.raises(Error, match=r"out.parquet: cannot be written"):
        score_file(Scorer(model), rows, tmp_path / "nowhere" / "out.parquet")


def test_a_damaged_row_group_is_no_half_result(
    model: Path, rows: Path, tmp_path: Path
) -> None:
    data = bytearray(rows.read_bytes())
    data[4 : len(data) // 2] = np.zeros(len(data) // 2 - 4, np.uint8).tobytes()
    rows.write_bytes(data)
    with pytest.raises(Error, match=r"rows.parquet: is damaged"):
        score_file(Scorer(model), rows, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_a_full_disk_is_said_of_the_file(
    model: Path, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left of a run that has not begun; one that has, is continued."""
    out = tmp_path / "out.parquet"
    writes: list[int] = []

    def until(most: int, descriptor: int) -> None:
        writes.append(descriptor)
        if len(writes) > most:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for most, left in ((0, False), (2, True)):
        writes.clear()
        monkeypatch.setattr(os, "fsync", partial(until, most))
        with pytest.raises(Error, match=r"out.parquet\S*: cannot be written: No space"):
            score_file(Scorer(model), rows, out)
        assert bool(list(tmp_path.glob("out*"))) == left
    monkeypatch.undo()
    assert score_file(Scorer(model), rows, out).resumed == GROUP
    assert pq.read_table(out).num_rows == 135
