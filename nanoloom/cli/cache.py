"""nanoloom cache: what is kept of compiled code, and how to be rid of it."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated

import typer

from nanoloom.cli import options as words
from nanoloom.cli.failures import DONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nanoloom.cache import Cache
    from nanoloom.cache.store import Entry

EXAMPLE = "Example: nanoloom cache prune --limit 1G"
ACTIONS = ("size", "list", "prune", "clear")
KINDS = ("kernels", "models", "weights")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
Action = Annotated[
    str,
    typer.Argument(
        metavar="[ACTION]",
        help="size: how much is kept. list: every entry. prune: remove what was not "
        "used for the longest time. clear: remove all that nobody uses.",
    ),
]
Limit = Annotated[
    str | None,
    typer.Option(
        "--limit",
        metavar="SIZE",
        help="With prune: keep at most so much, as 500M or 2G (default: 4G).",
    ),
]


def cache(
    action: Action = "size",
    limit: Limit = None,
    folder: words.CacheFolder = None,
    json: words.Json = False,
    debug: words.Debug = False,
) -> int:
    """Say what the cache holds, or remove from it."""
    del debug
    from nanoloom.cli.session import open_cache

    if action not in ACTIONS:
        reason = f"{action} is none of {', '.join(ACTIONS)}"
        raise typer.BadParameter(reason, param_hint="ACTION")
    if limit is not None and action != "prune":
        raise typer.BadParameter("it goes with prune", param_hint="--limit")
    store = open_cache(folder, False)
    most = store.limit_bytes if limit is None else size_of(limit)
    before = sum(entry.bytes for entry in store.entries())
    if action in ("prune", "clear"):
        store.shrink(most if action == "prune" else 0)
    found = store.entries()
    if json:
        show_json(store, found, before)
    else:
        if action == "list":
            show_list(found)
        show_size(store, found, before)
    return DONE


def size_of(text: str) -> int:
    """500M as a number of bytes; raises typer.BadParameter."""
    match = re.fullmatch(r"(\d{1,15})([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        reason = f"{text!r} is no size like 500M or 2G"
        raise typer.BadParameter(reason, param_hint="--limit")
    return int(match[1]) * UNITS[match[2].upper()]


def show_json(store: Cache, found: Sequence[Entry], before: int) -> None:
    from dataclasses import asdict

    from nanoloom.cli.arrays import as_json

    total = sum(entry.bytes for entry in found)
    facts = {
        "folder": str(store.root),
        "limit": store.limit_bytes,
        "bytes": total,
        "removed": max(0, before - total),
        "entries": [asdict(entry) for entry in found],
    }
    print(as_json(facts))


def show_list(found: Sequence[Entry]) -> None:
    """One entry a line, for eyes and for other programs."""
    for entry in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        print(f"{used}  {entry.bytes:12,}  {entry.kind:7}  {entry.key}")


def show_size(store: Cache, found: Sequence[Entry], before: int) -> None:
    from nanoloom.cli.terminal import plural

    total = sum(entry.bytes for entry in found)
    print(f"{store.root}: {shown(total)} of {shown(store.limit_bytes)}")
    for kind in KINDS:
        sizes = [entry.bytes for entry in found if entry.kind == kind]
        count = plural(len(sizes), "entry").replace("entrys", "entries")
        print(f"  {kind}: {count}, {shown(sum(sizes))}")
    if before > total:
        print(f"removed {shown(before - total)}")


def shown(size: int) -> str:
    """A number of bytes for a reader."""
    for unit in ("T", "G", "M", "K"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.1f} {unit}iB"
    return f"{size} bytes"
