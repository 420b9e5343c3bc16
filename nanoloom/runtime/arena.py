"""Working memory of a loaded program, and what a run of it is given."""

from __future__ import annotations

import ctypes

import numpy as np

from nanoloom.errors import Error, InputError, UnfitBranch
from nanoloom.runtime import layout
from nanoloom.runtime.arrays import HEADER_BYTES
from nanoloom.runtime.call_table import Table
from nanoloom.runtime.given_arrays import times_of
from nanoloom.runtime.limits import Limits, current
from nanoloom.runtime.loading import Code
from nanoloom.runtime.node_memory import keep_on_nodes
from nanoloom.runtime.shared_pool import Member
from nanoloom.runtime.slices import Slices


class Arena:
    """Working memory of one run, on huge pages where the system has them.

    together: rows that run together in it, 0 where it is for a plain run.  bytes: of
    it.  call: the struct that a run takes, at `pointer`; objects: where the
    arrays' own addresses go, inputs and outputs: where those of their numbers go.
    arguments: of `run`, but for the times.
    """

    def __init__(
        self,
        code: Code,
        entry: layout.Library,
        table: Table,
        parameters: int | None,
        member: Member | None,
        types: list[np.dtype],
        *,
        of_rows: bool = False,
    ) -> None:
        if member is None:
            raise Error("the program is closed")
        self._code, self._entry, self._table = code.hold(), entry, table
        self.member = member
        threads = 1 if of_rows else member.threads
        self.together = int(entry.rows_together(table.program)) if of_rows else 0
        bytes_of = entry.rows_bytes if of_rows else entry.workspace_bytes
        self.bytes = int(bytes_of(table.program, self.together or threads))
        self.address = entry.arena_create(self.bytes)
        if not self.address:
            raise MemoryError(f"no memory for an arena of {self.bytes} bytes")
        if member.nodes:
            keep_on_nodes(self.address, self.bytes, member.nodes)
        program = table.program.contents
        self.inputs = (ctypes.c_void_p * program.input_count)()
        self.outputs = (ctypes.c_void_p * program.output_count)()
        self.objects = (ctypes.c_void_p * len(types))()
        self._types, pool = types, member.entry
        self._memory = layout.Memory(
            parameters, self.inputs, self.outputs, self.address, threads
        )
        self.call = layout.Call(
            ctypes.addressof(program),
            ctypes.addressof(self._memory),
            pool.pool_run,
            member.address,
            pool.pool_enter,
            pool.pool_leave,
            self.objects,
            (ctypes.c_void_p * len(types))(*map(id, types)),
            id(np.ndarray),
            HEADER_BYTES,
        )
        self.pointer = ctypes.addressof(self.call)
        self.limits: Limits | None = None  # of the last run
        self._timed: tuple[np.ndarray | None, int] = None, 0

    def limit(self) -> None:
        """Have the next run end where the call that this thread is in does."""
        limits = current.limits
        if limits is not self.limits:
            self.limits = limits
            self._memory.control = None if limits is None else limits.address

    def timed(self, nanoseconds: np.ndarray, slices: Slices | None) -> int:
        """Where the next run leaves its times, and notes what its threads do."""
        self._memory.slices = None if slices is None else slices.address
        if nanoseconds is not self._timed[0]:  # profiles give the same again and again
            steps = self._table.program.contents.step_count
            self._timed = nanoseconds, times_of(nanoseconds, steps)
        return self._timed[1]

    def run_rows(self, count: int) -> int:
        """The status of as many runs, of rows that lie behind each other."""
        return int(self._entry.run_rows(self.pointer, count, self.together))

    def failure(self, status: int) -> Error:
        """Why the last run failed."""
        if self.limits and (ended := self.limits.failure(status)) is not None:
            return ended
        index = ctypes.c_int64()
        found = self._entry.failed(self._table.program, self.address, index)
        check = found.contents
        if not check.what:
            return UnfitBranch(check.where.decode())
        return InputError(
            f"{check.what.decode()} {index.value} is outside {check.low}..{check.high}",
            where=check.where.decode(),
        )

    def __del__(self) -> None:
        if hasattr(self, "_code"):
            if getattr(self, "address", None):
                self._entry.arena_destroy(self.address, self.bytes)
            self._code.release()
