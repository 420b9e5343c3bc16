"""The threads of this process that compute: one pool for all programs and all callers.

Its code is that of the library that was loaded first; it goes with the last program.
"""

from __future__ import annotations

import ctypes
import os
import threading

from nanoloom.errors import Error
from nanoloom.runtime import layout
from nanoloom.runtime.loading import Code
from nanoloom.runtime.threads import default_threads
from nanoloom.runtime.topology import Topology, memory_nodes, workers_cpus

_WORD = 64  # bits


class Pool:
    """A pool of threads, and how many use it.

    As many threads compute at once as this process has CPUs assigned, or as the most
    that a program was asked to take.
    """

    def __init__(self, code: Code, entry: layout.Library) -> None:
        self.entry, self.users, self.most = entry, 0, 1
        self._placed: frozenset[int] | None = None
        self.address = entry.pool_create(1)
        if not self.address:
            raise MemoryError("no memory for a thread pool")
        self.code = code.hold()

    def grow(self, threads: int, assigned: int, topology: Topology) -> None:
        """Have so many threads, where the system starts them."""
        self.most = max(threads, self.most)
        if (cpus := workers_cpus(topology, self.most)) != self._placed:
            self._place(cpus or frozenset(x.number for x in topology.cpus))
            self._placed = cpus
        self.entry.pool_bound(self.address, max(self.most, assigned))
        self.entry.pool_grow(self.address, threads)

    def _place(self, cpus: frozenset[int]) -> None:
        words = (ctypes.c_uint64 * (max(cpus) // _WORD + 1))()
        for cpu in cpus:
            words[cpu // _WORD] |= 1 << cpu % _WORD
        self.entry.pool_place(self.address, words, len(words))

    def end(self) -> None:
        self.entry.pool_destroy(self.address)
        self.code.release()


class _Shared:
    """The pool of this process, as long as a program is there."""

    pool: Pool | None = None
    # Taken again by the end of a program in the middle of a beginning: the collector
    # ends those of cycles whenever it likes.
    changing = threading.RLock()

    @classmethod
    def forked(cls) -> None:
        """A child has no thread that could give the lock back."""
        cls.changing = threading.RLock()


os.register_at_fork(after_in_child=_Shared.forked)


class Member:
    """A program's part in the pool.

    threads: that it runs with.  address: of what its runs are given.  nodes: whose
    memory it should have; None for any.
    """

    def __init__(self, code: Code, entry: layout.Library, threads: int) -> None:
        with _Shared.changing:
            pool = _Shared.pool
            if pool is None:
                pool = _Shared.pool = Pool(code, entry)
            pool.users += 1
            self._pool: Pool | None = pool
            self.entry = pool.entry
            pool.grow(threads, _assigned(), Topology.of_system())
            started = int(self.entry.pool_threads(pool.address))
            self.nodes = memory_nodes(Topology.of_system(), pool.most)
        self.threads = min(threads, started)
        self._struct = layout.Member(pool.address, self.threads)
        self.address = ctypes.addressof(self._struct)

    def release(self) -> None:
        """Use it no more; the last one ends the threads.  No run may be under way."""
        with _Shared.changing:
            pool, self._pool = self._pool, None
            if pool is None:
                return
            pool.users -= 1
            if pool.users:
                return
            _Shared.pool = None
            pool.end()


def _assigned() -> int:
    try:
        return default_threads()
    except Error:  # a variable that is no number, which a program does not ask
        return 1
