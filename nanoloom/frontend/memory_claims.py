"""Sizes a model claims, judged by arithmetic before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.errors import ModelError

if TYPE_CHECKING:  # checking inputs needs no model
    import onnx_ir as ir

ADDRESSES = 2**47  # bytes that a program has on x86-64 and AArch64
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def available_memory() -> int:
    """Bytes that this process may still take: free memory and swap, or its cgroup's."""
    facts: dict[str, int] = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        key, _, value = line.partition(":")
        facts[key] = int(value.split()[0]) * 1024
    free = facts["MemAvailable"] + facts.get("SwapFree", 0)
    try:
        limit = CGROUP_LIMIT.read_text().strip()
    except OSError:
        return free
    return min(free, int(limit)) if limit.isdigit() else free


def byte_size(shape: Sequence[int], dtype: ir.DataType) -> int:
    """Bytes of a dense tensor, types of less than a byte packed."""
    return (math.prod(shape) * dtype.bitwidth + 7) // 8


def check_sizes(model: ir.Model, where: str, memory: int | None = None) -> None:
    """Raise ModelError for a value of static shape that is larger than the memory.

    memory: bytes; by default what is available now.
    """
    limit = available_memory() if memory is None else memory
    for graph in (model.graph, *model.graph.subgraphs()):
        for value in values(graph):
            check_value(value, where, limit)


def values(graph: ir.Graph) -> Iterable[ir.Value]:
    yield from graph.inputs
    for node in graph:
        yield from node.outputs


def check_value(value: ir.Value, where: str, limit: int) -> None:
    shape, dtype = value.shape, value.dtype
    if shape is None or dtype is None or dtype.name == "STRING":
        return
    # An unknown dimension is at least one.
    sizes = [d if isinstance(d, int) else 1 for d in shape]
    need = byte_size(sizes, dtype)
    if need > limit:
        text = "x".join(str(d) for d in shape)
        raise ModelError(
            f"value {value.name} ({dtype.name} {text}) needs {in_words(need)},"
            f" {in_words(limit)} of memory are free",
            where=where,
            hint="export or bind the model with smaller dimensions",
        )
    require_addresses(value, where)


def require_addresses(value: ir.Value, where: str) -> None:
    """Raise ModelError for a value whose rows no memory of any machine could hold.

    Also if there are none of them: numpy makes no array of such a shape.
    """
    shape, dtype = value.shape, value.dtype
    if shape is None or dtype is None or dtype.name == "STRING":
        return
    sizes = [d or 1 if isinstance(d, int) else 1 for d in shape]
    if byte_size(sizes, dtype) >= ADDRESSES:
        text = "x".join(str(d) for d in shape)
        raise ModelError(
            f"value {value.name} ({dtype.name} {text}) has more bytes than there are"
            " addresses",
            where=where,
            hint="export or bind the model with smaller dimensions",
        )


def in_words(count: int) -> str:
    """A number of bytes for a message: 3.2 GB."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
