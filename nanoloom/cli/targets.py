"""nanoloom targets: every CPU that is known, what can be added to it, this machine, and
its measured peaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanoloom.cli import options as words
from nanoloom.cli.failures import DONE

if TYPE_CHECKING:
    from nanoloom.target.facts import Target
    from nanoloom.target.features import Feature
    from nanoloom.target.peaks import Peaks

EXAMPLE = "Example: nanoloom targets --measure"
Measure = Annotated[
    bool,
    typer.Option(
        "--measure",
        help="Measure this machine's arithmetic and memory (a few seconds).",
    ),
]
UNITS = {"l1": "GB/s", "l2": "GB/s", "memory": "GB/s"}  # others: operations
INTEGERS = ("u8", "s8", "i8")
NAMES = {"l1": "level 1 cache", "l2": "level 2 cache", "memory": "memory"}


def targets(
    measured: Measure = False,
    threads: words.Threads = None,
    json: words.Json = False,
    cache: words.CacheFolder = None,
    no_cache: words.NoCache = False,
    debug: words.Debug = False,
) -> int:
    """List the CPUs that nanoloom compiles for, and say what this machine is."""
    del debug
    from nanoloom.cli.session import open_cache
    from nanoloom.errors import Unsupported
    from nanoloom.target import TARGETS
    from nanoloom.target.cached_host import host

    store = open_cache(cache, no_cache)
    try:
        here = host(store)
    except Unsupported:
        if measured:
            raise
        here = None  # the list is of use on any machine
    peaks = measure(here, threads) if measured and here else None
    if json:
        print_json(TARGETS, here, peaks)
        return DONE
    show(TARGETS, here)
    if peaks is not None:
        show_peaks(peaks)
    return DONE


def measure(here: Target, threads: int | None) -> Peaks:
    from nanoloom.runtime.threads import thread_count
    from nanoloom.target import peaks

    return peaks.measure(here, thread_count(threads))


def print_json(
    known: tuple[Target, ...], here: Target | None, peaks: Peaks | None
) -> None:
    from dataclasses import asdict

    from nanoloom.cli.arrays import as_json
    from nanoloom.target.cached_host import to_dict
    from nanoloom.target.features import features

    facts: dict[str, Any] = {"targets": [to_dict(target) for target in known]}
    facts["features"] = [asdict(addition) for addition in features()]
    facts["host"] = to_dict(here) if here else None
    if peaks is not None:
        facts["peaks"] = asdict(peaks)
    print(as_json(facts))


def show(known: tuple[Target, ...], here: Target | None) -> None:
    from nanoloom.cli.terminal import out, table
    from nanoloom.target.features import features

    columns = ("target", "CPU", ">vectors", ">regs", ">FMA/cycle", "tiles", "caches")
    screen = out()
    screen.print(table("", columns, (row(target) for target in known)))
    screen.print()
    title = "features that are added to a name: riscv64+v, aarch64+sve2+bf16"
    added = ("feature", "CPU", ">needs", "brings")
    screen.print(table(title, added, map(cells, features())))
    screen.print()
    if here is None:
        screen.print("this machine is none that nanoloom knows")
        return
    screen.print(table("this machine", columns, [row(here)]))
    extensions = " ".join(sorted(here.extensions))
    screen.print(f"with {extensions}", markup=False)


def row(target: Target) -> list[str]:
    """The facts of a target as cells."""
    vector = target.vector
    bits = f"{vector.min_bits}"
    if vector.scalable:
        most = vector.bits * vector.vscale_max
        bits = f"{bits}-{most}" if most > vector.min_bits else f"{bits} scalable"
    caches = [target.caches.l1d, target.caches.l2, target.caches.l3]
    return [
        target.name,
        target.arch,
        bits,
        str(vector.registers),
        f"{vector.fma_per_cycle:g}",
        target.matrix.kind if target.matrix else "",
        " ".join(size(count) for count in caches if count),
    ]


def cells(added: Feature) -> list[str]:
    """A feature, and the bits of vectors that it needs."""
    return [f"+{added.name}", added.arch, str(added.bits or ""), added.brings]


def size(count: int) -> str:
    """Bytes of a cache: 48K, 2M."""
    for unit, one in (("M", 1 << 20), ("K", 1 << 10)):
        if count >= one:
            return f"{count / one:.4g}{unit}"
    return str(count)


def show_peaks(peaks: Peaks) -> None:
    """The best of each rate, one thread beside all of them."""
    from nanoloom.cli.terminal import out, plural, table

    counts = sorted({rate.threads for rate in peaks.rates})
    names = dict.fromkeys(rate.what for rate in peaks.rates)
    rows: list[list[str]] = []
    for name in names:
        rates = [peaks.best(name, count) for count in counts]
        cells = ["" if rate is None else f"{rate:.1f}" for rate in rates]
        rows.append([NAMES.get(name, name), *cells, unit(name)])
    columns = ("measured peak", *(f">{plural(n, 'thread')}" for n in counts), "")
    screen = out()
    screen.print()
    screen.print(table("", columns, rows))


def unit(what: str) -> str:
    """Of a rate: bytes read, or operations on floats or integers."""
    if what in UNITS:
        return UNITS[what]
    return "GOP/s" if what.startswith(INTEGERS) else "GFLOP/s"
