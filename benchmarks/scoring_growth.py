"""What many workers take, simulated with the figures of one: start, network, memory.

Machines of some workers each read the model from one place, whose bandwidth they share.
The first worker of a machine compiles, or reads the code that another machine has made
where all see one cache; the others wait for it.  All map the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom_papers.reproduce.tables import Sheet

MACHINE_WORKERS = 50
SERVED_BYTES = 1.25e9  # a second, by what holds the model: 10 Gbit/s
ROWS = 1_000_000_000


@dataclass(frozen=True)
class Figures:
    """Of one worker, measured.

    compile_seconds, start_seconds: until the first table is scored, with nothing in the
    cache and with all.  private_bytes: that no other worker shares.  artefact_bytes:
    the model with its code and packed weights.
    """

    compile_seconds: float
    start_seconds: float
    private_bytes: int
    artefact_bytes: int
    rows_per_second: float


@dataclass(frozen=True)
class Grown:
    """All workers score after so many seconds; machine_bytes: memory of a machine."""

    ready_seconds: float
    machine_bytes: float
    total_seconds: float


def simulated(
    figures: Figures,
    workers: int,
    *,
    shared_cache: bool,
    machine_workers: int = MACHINE_WORKERS,
    served_bytes: float = SERVED_BYTES,
    rows: int = ROWS,
) -> Grown:
    """Workers that all begin at once, machine by machine."""
    machines = -(-workers // machine_workers)
    served = 0.0  # when what holds the model is free again
    ready: list[float] = []
    made = 0.0  # when the shared cache has the code
    for machine in range(machines):
        served += figures.artefact_bytes / served_bytes
        if shared_cache and machine:
            first = max(served, made) + figures.start_seconds
        else:
            first = made = served + figures.compile_seconds
        here = min(machine_workers, workers - machine * machine_workers)
        ready += [first] + [first + figures.start_seconds] * (here - 1)
    speed = figures.rows_per_second
    # Whoever is ready takes the next rows: all end together.
    total = (rows / speed + sum(ready)) / workers
    most = min(machine_workers, workers)
    memory = figures.artefact_bytes + most * figures.private_bytes
    return Grown(max(ready), memory, max(total, max(ready)))


def growth(figures: Figures) -> Sheet:
    """A row for each number of workers."""
    lines: list[list[str]] = []
    for workers in (1, 2, 10, 100, 1000):
        own = simulated(figures, workers, shared_cache=False)
        shared = simulated(figures, workers, shared_cache=True)
        ideal = ROWS / figures.rows_per_second / workers
        lines.append(
            [
                str(workers),
                f"{own.ready_seconds:.1f} s",
                f"{shared.ready_seconds:.1f} s",
                f"{own.machine_bytes / 2**20:.0f} MiB",
                f"{ideal / own.total_seconds:.1%}",
            ]
        )
    columns = (
        ">workers",
        ">all ready",
        ">with a shared cache",
        ">memory a machine",
        ">share of the time that scores",
    )
    notes = [
        f"simulated: {MACHINE_WORKERS} workers a machine, {ROWS} rows, the model from "
        f"one place at {SERVED_BYTES / 1e9} GB/s; one worker as measured above"
    ]
    return Sheet("many workers", columns, lines, notes)
