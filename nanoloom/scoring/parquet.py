"""A Parquet file scored into another, which a killed run continues.

    OUT.parquet.parts/run.json      what is scored, by which model, how
    OUT.parquet.parts/00000012.part a row group of the result, whole

A part appears by a rename, and so does OUT.parquet when all are there: a killed run
leaves no half of either.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nanoloom.binary.output_files import require_replaceable
from nanoloom.cache import file_operations
from nanoloom.cache.digest import of
from nanoloom.errors import Error, ModelError, refused
from nanoloom.interface.named_file import require_file
from nanoloom.scoring.array_tables import taken
from nanoloom.scoring.scorer import Scorer
from nanoloom.scoring.settings import ERROR_COLUMN

PARTS, RUN = ".parts", "run.json"
# Tables that are in memory at once hold so many batches for each thread.
BATCHES_A_THREAD = 16
FOOTER_TAIL = 8  # bytes: the footer's length, and "PAR1"
Advance = Callable[[int, int], None]  # rows done, rows in all


@dataclass(frozen=True)
class Report:
    """What a run did.  resumed: rows that an earlier one had scored."""

    rows: int
    resumed: int
    errors: int
    seconds: float
    threads: int


def score_file(
    scorer: Scorer, given: Path, output: Path, advance: Advance = lambda *_: None
) -> Report:
    """Score every row group of a file.  advance: called behind each table.

    Raises Error for files that cannot be read or written, for parts of another run, and
    while another process writes the same; what a table raises besides.
    """
    begun = time.perf_counter()
    with reading(given) as file:
        parts = output.with_name(output.name + PARTS)
        run = File(scorer, file, parts, advance)
        with held(parts, output):
            run.require_same(given)
            run.score()
            run.join(output)
            shutil.rmtree(parts)
    seconds = time.perf_counter() - begun
    return Report(run.done, run.resumed, run.errors, seconds, scorer.workers)


@contextmanager
def reading(path: Path) -> Generator[Any]:
    """A Parquet file; raises Error for what is none, or damaged."""
    require_file(path)
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except OSError as error:
        if error.errno is None:  # Arrow's own
            said = str(error).splitlines()[0]
            raise ModelError(f"is damaged: {said}", where=str(path)) from error
        raise
    except pa.ArrowInvalid as error:
        said = str(error).splitlines()[0]
        raise Error(f"is no Parquet file: {said}", where=str(path)) from error


@contextmanager
def held(parts: Path, output: Path) -> Generator[None]:
    """The folder of a run's parts, which no other process has meanwhile.

    One that is made here and has no part when an error ends the run is gone.
    """
    try:
        require_replaceable(output)
        is_new = not parts.exists()
        parts.mkdir(exist_ok=True)
        descriptor = os.open(parts, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise refused("cannot be written", error, where=str(output)) from error
    try:
        if file_operations.lock(descriptor, fcntl.LOCK_EX) is False:
            reason = "another process is writing it"
            raise Error(reason, where=str(output), hint="wait for it")
        yield
    except Error:
        if is_new and parts.is_dir() and {x.name for x in parts.iterdir()} <= {RUN}:
            shutil.rmtree(parts, ignore_errors=True)
        raise
    finally:
        os.close(descriptor)


class File:
    """A file that is scored.  done, resumed, errors: rows."""

    def __init__(
        self, scorer: Scorer, file: Any, parts: Path, advance: Advance
    ) -> None:
        self.scorer, self.file, self.parts, self.advance = scorer, file, parts, advance
        self.total = file.metadata.num_rows
        self.done = self.resumed = self.errors = 0
        self.schema = scorer.schema(file.schema_arrow)
        taken(file.schema_arrow.names, scorer.rowwise, scorer.settings)
        read = {c for names in scorer.settings.columns.values() for c in names}
        names = {x.name for x in scorer.rowwise.inputs} | read | {*scorer.settings.keep}
        self.columns = [n for n in file.schema_arrow.names if n in names]

    def require_same(self, given: Path) -> None:
        """Raise Error for parts of another run; note what this one is."""
        now = json.dumps(
            {
                "input": content_of(given),
                "model": self.scorer.place.key,
                "settings": repr(self.scorer.settings),
            }
        )
        known = self.parts / RUN
        if not known.exists():
            if any(self.parts.iterdir()):
                self.refuse("holds files that are no run's")
            with replaced(known) as draft:
                draft.write_text(now)
        elif known.read_text() != now:
            self.refuse("is of a run with another input, model or other options")

    def refuse(self, reason: str) -> None:
        hint = f"remove it to begin anew: rm -r {self.parts}"
        raise Error(reason, where=str(self.parts), hint=hint)

    def score(self) -> None:
        """Write the parts that are not there yet."""
        for group in range(self.file.num_row_groups):
            rows = self.file.metadata.row_group(group).num_rows
            if (part := self.part(group)).exists():
                self.resumed += rows
                self.errors += errors_in(part)
                self.done += rows
                self.advance(self.done, self.total)
                continue
            tables = list(self.tables(group))
            made = pa.concat_tables([self.schema.empty_table(), *tables])
            with replaced(part) as draft:
                pq.write_table(made, draft, row_group_size=max(rows, 1))
            self.errors += errors_of(made)

    def tables(self, group: int) -> Iterator[Any]:
        """The scored rows of a group, a part of them in memory at a time."""
        most = BATCHES_A_THREAD * self.scorer.workers * self.scorer.settings.batch_rows
        for batch in self.file.iter_batches(most, [group], self.columns):
            table = pa.Table.from_batches([batch])
            yield self.scorer.scored(table, self.done)
            self.done += len(table)
            self.advance(self.done, self.total)

    def join(self, output: Path) -> None:
        """One file of all parts, a row group each."""
        with (
            replaced(output) as draft,
            pq.ParquetWriter(draft, self.schema) as writer,
        ):
            for group in range(self.file.num_row_groups):
                table = pq.read_table(self.part(group), schema=self.schema)
                writer.write_table(table, row_group_size=max(len(table), 1))

    def part(self, group: int) -> Path:
        return self.parts / f"{group:08}.part"


@contextmanager
def replaced(path: Path) -> Generator[Path]:
    """A file to write, which takes the place of `path` when it is whole, on disk.

    Raises Error, which names it, for what the system refuses: a full disk.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        yield draft
        descriptor = os.open(draft, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, path)
    except OSError as error:
        raise refused("cannot be written", error, where=str(path)) from error
    finally:
        file_operations.remove(draft)


def content_of(path: Path) -> str:
    """A name for a file's content: its size, time and footer, which has the places and
    statistics of all row groups.  A digest of all would take as long as scoring."""
    now = path.stat()
    with path.open("rb") as file:
        file.seek(-FOOTER_TAIL, os.SEEK_END)
        tail = file.read()
        length = int.from_bytes(tail[:4], "little") + FOOTER_TAIL
        file.seek(-min(length, now.st_size), os.SEEK_END)
        return of("parquet", now.st_size, now.st_mtime_ns, file.read())


def errors_in(part: Path) -> int:
    names = pq.read_schema(part).names
    if ERROR_COLUMN not in names:
        return 0
    return errors_of(pq.read_table(part, columns=[ERROR_COLUMN]))


def errors_of(table: Any) -> int:
    """Rows that could not be scored."""
    if ERROR_COLUMN not in table.column_names:
        return 0
    return len(table) - table[ERROR_COLUMN].null_count
