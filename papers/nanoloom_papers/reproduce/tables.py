"""Measured rows as tables: for the terminal, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nanoloom_papers.reproduce.contenders import PEERS
from nanoloom_papers.reproduce.measurement import Row
from nanoloom_papers.reproduce.nanokernels import TITLES

NAMES = {"nanoloom": "nanoloom", **{peer.key: peer.name for peer in PEERS}}
SHORT = {"onnxruntime": "ORT"}
FIELDS = (
    "kind", "size", "arithmetic", "threads", "contender", "name", "median_seconds",
    "best_seconds", "gflops", "percent_of_peak", "nanoloom_percent", "peak_gflops",
    "bound_gflops", "families", "note",
)  # fmt: skip


@dataclass(frozen=True)
class Sheet:
    """A table: columns as `nanoloom.cli.terminal.table` takes them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def records(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One flat record a row and contender, in FIELDS' order."""
    return [record(row, key) for row in rows for key in [*row.times, *row.absent]]


def record(row: Row, key: str) -> dict[str, Any]:
    times = row.times.get(key)
    values = (
        row.chain.kind,
        row.chain.size,
        row.chain.arithmetic,
        row.threads,
        key,
        row.names.get(key, NAMES[key]),
        times.median if times else None,
        times.best if times else None,
        row.gflops(key),
        row.of_peak(key),
        row.against(key) if key != "nanoloom" else None,
        row.peak,
        row.bound,
        " ".join(row.families) if key == "nanoloom" else "",
        row.note if key == "nanoloom" else row.absent.get(key, ""),
    )
    return dict(zip(FIELDS, values, strict=True))


def as_csv(rows: Iterable[Row]) -> str:
    return csv_of(FIELDS, records(rows))


def csv_of(fields: Sequence[str], records: Iterable[Mapping[str, object]]) -> str:
    """Records of these fields, a line each, with a heading."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(fields)
    for each in records:
        writer.writerow([rounded(each[name]) for name in fields])
    return text.getvalue()


def rounded(value: object) -> object:
    """Six digits are more than a measurement has."""
    return f"{value:.6g}" if isinstance(value, float) else value


def as_dict(rows: Sequence[Row], target: str) -> dict[str, Any]:
    """What `--json` prints: the records, and all rates that were measured."""
    measured = {(row.threads, id(row.limits)): row.limits for row in rows}
    return {
        "target": target,
        "results": records(rows),
        "comparison": {
            title: shares for title, shares in comparison(rows).items() if shares
        },
        "rates": [
            {**asdict(found.peaks), "level3": found.level3}
            for found in measured.values()
        ],
    }


def speeds(rows: Sequence[Row]) -> list[Sheet]:
    """GFLOP/s, a table a kind and arithmetic."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.chain.kind, row.chain.arithmetic), []).append(row)
    return [
        speed_sheet(f"{TITLES[kind]}, {TITLES[arithmetic]}: GFLOP/s", group)
        for (kind, arithmetic), group in groups.items()
    ]


def speed_sheet(title: str, rows: Sequence[Row]) -> Sheet:
    """Systems beside each other; who is missing, and why, in the notes."""
    keys = [key for key in NAMES if any(key in row.times for row in rows)]
    if "nanoloom" not in keys:
        keys.insert(0, "nanoloom")
    columns = ("size", ">thr", *(f">{SHORT.get(key, NAMES[key])}" for key in keys))
    cells = [
        (
            short_size(row.chain.size),
            str(row.threads),
            *(whole(row.gflops(key)) for key in keys),
            whole(row.of_peak("nanoloom")),
            whole(row.against(row.best_peer or "")),
        )
        for row in rows
    ]
    ends = (">%peak", ">%best")
    best = "%best: nanoloom's speed in percent of the best peer's"
    below = (*peaks(rows), best, *instructions(rows), *notes(rows))
    return Sheet(title, (*columns, *ends), tuple(cells), below)


def peaks(rows: Sequence[Row]) -> list[str]:
    """The denominators: the highest of all rows with each number of threads."""
    found: dict[int, float] = {}
    for row in rows:
        if row.peak is not None:
            found[row.threads] = max(row.peak, found.get(row.threads, 0.0))
    if not found:
        return ["this target has no unit of its own for it: no peak is known"]
    rates = ", ".join(f"{peak:.0f} with {count}" for count, peak in found.items())
    threads = "thread" if max(found) == 1 else "threads"
    told = "which takes its turns with the others: at most"
    return [f"%peak: of the measured peak, {told} {rates} {threads}"]


def instructions(rows: Sequence[Row]) -> list[str]:
    """The families of nanokernels, with the sizes where they are not the same."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        sizes = found.setdefault(" ".join(row.families), {})
        sizes[short_size(row.chain.size)] = None
    if len(found) == 1:
        return [f"nanokernels: {family}" for family in found if family]
    told = [f"{family} ({', '.join(sizes)})" for family, sizes in found.items()]
    return [f"nanokernels: {', '.join(told)}"] if found else []


def short_size(size: str) -> str:
    """512x512x512 -> 512^3."""
    edges = size.split("x")
    return f"{edges[0]}^3" if len(edges) == 3 and len(set(edges)) == 1 else size


def notes(rows: Sequence[Row]) -> list[str]:
    """What is missing, each reason once."""
    found: dict[str, None] = {}
    for row in rows:
        if row.note:
            found[f"nanoloom, {row.chain.size}: {row.note}"] = None
        for key, reason in row.absent.items():
            if key != "nanoloom":
                found[f"not measured: {told(key, reason)}"] = None
    return list(found)


def told(key: str, reason: str) -> str:
    """Who, and why not."""
    name = NAMES[key]
    return reason if reason.startswith(name) else f"{name}: {reason}"


def comparison(rows: Sequence[Row]) -> dict[str, dict[str, dict[str, float]]]:
    """Tables 2 and 3: nanoloom's speed in percent of each peer's.

    By "kind arithmetic", peer and size: the geometric mean over numbers of threads.
    """
    shares: dict[str, dict[str, dict[str, list[float]]]] = {}
    for row in rows:
        group = shares.setdefault(f"{row.chain.kind} {row.chain.arithmetic}", {})
        for key in row.times:
            share = row.against(key) if key != "nanoloom" else None
            if share is not None:
                sizes = group.setdefault(key, {})
                sizes.setdefault(row.chain.size, []).append(share)
    return {
        title: {
            key: {size: geometric_mean(found) for size, found in sizes.items()}
            for key, sizes in group.items()
        }
        for title, group in shares.items()
    }


def comparison_sheets(rows: Sequence[Row]) -> list[Sheet]:
    """The comparison as tables, one a kind: a line an arithmetic and peer."""
    found: list[Sheet] = []
    every = comparison(rows)
    for kind in dict.fromkeys(row.chain.kind for row in rows):
        sizes = list(dict.fromkeys(r.chain.size for r in rows if r.chain.kind == kind))
        lines = [
            (
                TITLES[title.split()[1]],
                NAMES[key],
                *(percent(shares.get(size)) for size in sizes),
            )
            for title, group in every.items()
            if title.split()[0] == kind
            for key, shares in group.items()
        ]
        if lines:
            title = f"{TITLES[kind]}: nanoloom's speed in percent of a peer's"
            columns = (
                "-arithmetic",
                "peer",
                *(f">{short_size(size)}" for size in sizes),
            )
            note = "geometric mean over the numbers of threads"
            found.append(Sheet(title, columns, tuple(lines), (note,)))
    return found


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def whole(value: float | None) -> str:
    """A number without decimals, "" for none."""
    return "" if value is None else f"{value:.0f}"


def percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} %"
