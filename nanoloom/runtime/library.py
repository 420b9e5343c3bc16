"""A compiled program loaded into this process."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from weakref import WeakSet

import numpy as np

from nanoloom.errors import Error
from nanoloom.interface.tensor import Element, Tensor
from nanoloom.runtime import layout
from nanoloom.runtime.arena import Arena
from nanoloom.runtime.arrays import address, empty_of
from nanoloom.runtime.call_table import Table
from nanoloom.runtime.given_arrays import begun_in, point, wanted
from nanoloom.runtime.limits import under_way
from nanoloom.runtime.loading import Code, load
from nanoloom.runtime.open_sizes import open_sizes
from nanoloom.runtime.scattered_weights import (
    Parameters,
    ScatteredWeights,
    parameter_address,
)
from nanoloom.runtime.shared_pool import Member
from nanoloom.runtime.slices import Slices

# Bytes of an output that may begin anywhere: as many as a first-level cache has, where
# a store into two lines takes a cycle more.
FEW = 32768


class Library:
    """A library written by nanoloom.binary.shared, with or without its parameters.

    Its code stays as long as this, an instance or an arena of it is there.
    """

    def __init__(self, path: Path) -> None:
        """Load the library; raises Error as `loading.load` does."""
        code, entry = load(path)
        self.path, self.file_bytes = path, path.stat().st_size
        self._show(code, entry, Table(entry.program))

    def bound(self, dims: Sequence[int]) -> Library:
        """The program for numbers of its dimensions, in the order of `dims`.

        Raises Error where it does not take them.  It takes microseconds.
        """
        sizes, entry = self._entry.sizes.contents, self._entry
        count = int(entry.bound_bytes(sizes))
        room = empty_of((count,), np.dtype(np.uint8), count)
        given = (ctypes.c_int64 * len(dims))(*dims)
        made = entry.bind(sizes, given, address(room))
        if not made:
            pairs = zip(self.dims, dims, strict=True)
            called = ", ".join(f"{name}={number}" for name, number in pairs)
            raise Error(f"these are no sizes of the model: {called}")
        program = ctypes.cast(made, ctypes.POINTER(layout.Program))
        library = Library.__new__(Library)
        library.path, library.file_bytes = self.path, self.file_bytes  # of then
        library._show(self._code.hold(), entry, Table(program, room))
        library.in_place = self.in_place
        return library

    def _show(self, code: Code, entry: layout.Library, table: Table) -> None:
        self._code, self._entry, self._table = code, entry, table
        self.same_words = entry.same_words
        program = table.program.contents
        self.open = open_sizes(entry, program.input_count, program.output_count)
        self.dims = self.open.dims if self.open else ()
        self.inputs = tuple(
            _tensor(program.inputs[i]) for i in range(program.input_count)
        )
        self.outputs = tuple(
            _tensor(program.outputs[i]) for i in range(program.output_count)
        )
        kinds = [(x.shape, x.element.dtype) for x in self.outputs]
        self._kinds = [(s, d, prod(s) * d.itemsize) for s, d in kinds]
        numbers = range(program.step_count)
        self.steps = tuple(program.steps[i].name.decode() for i in numbers)
        self.arena_bytes = int(program.arena_bytes)
        self.parameter_bytes = int(program.parameter_bytes)
        first, kept = program.output_count - program.kept_count, program.kept_count
        pasts = self.inputs[program.input_count - kept :]
        self.pairs = {
            x.name: y.name for x, y in zip(pasts, self.outputs[first:], strict=True)
        }  # of a session, which has them itself
        self.in_place: tuple[tuple[int, int], ...] = ()  # inputs, outputs in them
        self.inner_parameters: int | None = program.parameters

    def __del__(self) -> None:
        if hasattr(self, "_code"):
            self._code.release()

    @property
    def lacks_branches(self) -> bool:
        """Whether a run may want a branch that does not run for all sizes."""
        program = self._table.program.contents
        checks = (program.checks[i] for i in range(program.check_count))
        return bool(self.open) and any(not check.what for check in checks)

    def new_outputs(self) -> list[np.ndarray]:
        """Arrays for `Instance.run` to write; large ones begin with a line of cache:
        of small ones the few stores into two lines cost less than that."""
        return [
            np.empty(shape, dtype) if size <= FEW else empty_of(shape, dtype, size)
            for shape, dtype, size in self._kinds
        ]

    def create(
        self, threads: int | Instance, parameters: Parameters = None
    ) -> Instance:
        """Threads of the process's pool, or those of another instance, and memory.

        `parameters`, 64-byte aligned bytes or pieces of them, are only referred to.
        """
        return Instance(self, self._code, self._entry, self._table, threads, parameters)


class Instance:
    """A program ready to run.  Threads may call `run` at the same time.

    slices: where timed runs note what their threads do; one runs at a time then.
    """

    slices: Slices | None = None

    def __init__(
        self,
        library: Library,
        code: Code,
        entry: layout.Library,
        table: Table,
        threads: int | Instance,
        parameters: Parameters,
    ) -> None:
        if isinstance(parameters, ScatteredWeights):
            table = Table(parameters.seen_by(table.program), table.room)
        self._member: Member | None = None
        self._arenas, self.row_arenas = deque[Arena](), deque[Arena]()
        self.arenas = WeakSet[Arena]()  # all that are there
        self._closing = threading.Lock()
        self._code, self._entry, self._table = code.hold(), entry, table
        self._run_pointers, self._run_arrays = entry.run_pointers, entry.run_arrays
        self._inputs, self._outputs = wanted(library.inputs), wanted(library.outputs)
        self._counts = len(self._inputs), len(self._outputs)
        self.library, self.parameters = library, parameters  # read in place: kept
        own = library.parameter_bytes, library.inner_parameters
        self._parameter_address = parameter_address(*own, parameters)
        if table.program.contents.needs_tiles and entry.request_tiles():
            said, where = "the system grants no AMX tile registers", str(library.path)
            raise Error(said, where=where)
        self._lender = threads if isinstance(threads, Instance) else None
        taken = isinstance(threads, Instance)
        member = threads._member if taken else Member(code, entry, threads)
        self._member, self.threads = member, member.threads if member else 1
        self.workspace_bytes = int(entry.workspace_bytes(table.program, self.threads))
        self._arenas_made = 0

    @property
    def arena_bytes(self) -> int:
        """Of the arenas that it keeps: as many as runs were under way at once."""
        return self.workspace_bytes * max(self._arenas_made, 1)

    def arena(self, *, of_rows: bool = False) -> Arena:
        """New working memory for one `run`, or one `run_rows`, at a time."""
        types = [x[0] for x in (*self._inputs, *self._outputs)]
        own = self._code, self._entry, self._table, self._parameter_address
        made = Arena(*own, self._member, types, of_rows=of_rows)
        self.arenas.add(made)
        return made

    def run(
        self,
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        *,
        arena: Arena | None = None,
        nanoseconds: np.ndarray | None = None,
    ) -> None:
        """Run once: read `inputs`, overwrite `outputs`, both in the program's order.

        Arrays are C-contiguous with exactly the shapes and types of the program and
        must not overlap, nor may other threads reshape them meanwhile.  Without `arena`
        one from an earlier run is used again.  `nanoseconds`, int64 of one element a
        step, receives the time of every step.

        Raises:
            InputError: an array has the wrong type, shape or memory layout; or, when
                the outputs are written and mean nothing, an index is out of range.
            Cancelled, TimedOut: by the limits of the call that this thread is in.
        """
        if self.is_closed:
            raise Error("the program is closed")
        if arena is not None and arena.member is not self._member:
            raise ValueError("the arena is another program's")
        inputs = begun_in(self.library.in_place, inputs, outputs)
        used = self._borrow(arena)
        timed = nanoseconds is not None
        times = used.timed(nanoseconds, self.slices) if timed else None
        status = layout.NO_ARRAYS
        if (len(inputs), len(outputs)) == self._counts:
            used.objects[:] = [id(array) for array in (*inputs, *outputs)]
            status = self._run_arrays(used.pointer, times)
        if status == layout.NO_ARRAYS:
            point(used.inputs, "input", inputs, self._inputs)
            point(used.outputs, "output", outputs, self._outputs)
            status = self._run_pointers(used.pointer, times)
        failure = used.failure(status) if status else None
        if arena is None:
            self._arenas.append(used)
        if failure is not None:
            raise failure

    def run_exact(
        self, inputs: Sequence[object], outputs: Sequence[np.ndarray]
    ) -> bool:
        """`run`, where arrays are just what the program takes; False for others.

        inputs, outputs: as many as the program has.
        """
        if self.is_closed or self.library.in_place:
            return False
        used = self._borrow()
        used.objects[:] = [id(array) for array in (*inputs, *outputs)]
        status = self._run_arrays(used.pointer, None)
        ran = status != layout.NO_ARRAYS
        failure = used.failure(status) if status and ran else None
        self._arenas.append(used)
        if failure is not None:
            raise failure
        return ran

    def run_at(self, starts: Sequence[int]) -> None:
        """`run` on memory: where inputs begin, then where outputs do.

        Nothing is looked at: each is as the program wants it, outputs in inputs there.
        """
        if self.is_closed:
            raise Error("the program is closed")
        used, count = self._borrow(), self._counts[0]
        used.inputs[:], used.outputs[:] = starts[:count], starts[count:]
        status = self._run_pointers(used.pointer, None)
        failure = used.failure(status) if status else None
        self._arenas.append(used)
        if failure is not None:
            raise failure

    @property
    def is_closed(self) -> bool:
        """Whether its threads have ended, those of a lender too."""
        lender = self._lender
        return self._member is None or (lender is not None and lender.is_closed)

    def close(self) -> None:
        """End the threads and free the memory; no run may be under way."""
        with self._closing:
            member, self._member = self._member, None
        if member is not None and self._lender is None:
            member.release()
        self._arenas.clear()
        self.row_arenas.clear()

    def __enter__(self) -> Instance:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # When Python ends, the pool's module may be empty, and the process frees all.
        if hasattr(self, "_code") and not ending():
            self.close()
            self._code.release()

    def _borrow(self, given: Arena | None = None) -> Arena:
        """That one, or one of an earlier run, with the limits of the next."""
        try:
            used = given or self._arenas.pop()
        except IndexError:
            self._arenas_made += 1
            used = self.arena()
        if under_way or used.limits is not None:
            used.limit()
        return used


def _tensor(row: layout.Tensor) -> Tensor:
    shape = tuple(row.shape[axis] for axis in range(row.rank))
    return Tensor(row.name.decode(), Element(row.element), shape)
