"""A program's fusions for people: what each kernel joins, and what stays apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nanoloom.cost.estimate import Estimate, estimate
from nanoloom.kernels.program import Program
from nanoloom.memory.calls import Call, Storage
from nanoloom.nest.fusion import plan_of
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.plan import Fusion
from nanoloom.target.facts import Target

PLANNED = "; the kernel's plan"


def print_fusions(
    program: Program, nests: Mapping[str, LoopNest], target: Target
) -> str:
    """Each kernel's plan, then the tensors that go through memory between kernels.

    nests: of the kernels, as scheduled; those with a script of the user's have none.
    """
    lines: list[str] = []
    for name in program.kernels:
        layers = [call.layer or "-" for call in program.calls if call.kernel == name]
        lines.append(f"{name}: {listed(layers)}")
        if name not in nests:
            lines.append("  its script is the user's: its loops are not known")
            continue
        nest = nests[name]
        planned = {fusion.producer for fusion in nest.plan}
        lines += [
            f"  {print_fusion(x)}{PLANNED if x.producer in planned else ''}"
            for x in plan_of(nest)
        ]
        lines.append(f"  {print_estimate(estimate(nest, (), target))}")
    apart = [print_edge(edge) for edge in edges_of(program)]
    if apart:
        lines += ["", "not fused:", *(f"  {line}" for line in apart)]
    return "\n".join(lines) + "\n"


def listed(names: list[str]) -> str:
    """Names, the first few of many."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def print_fusion(fusion: Fusion) -> str:
    again = f"{fusion.recompute:,} points again" if fusion.recompute else "none again"
    return (
        f"{fusion.producer} at {fusion.at} of {fusion.consumer}: "
        f"{fusion.footprint:,} points a step ({size(fusion.step_bytes)}), {again}; "
        f"saves {size(2 * fusion.bytes)} of memory's traffic"
    )


def print_estimate(made: Estimate) -> str:
    moved = (f"{x.name} {size(x.moved)}" for x in made.levels)
    return f"moved, by cache: {', '.join(moved)}"


def size(count: int) -> str:
    """Bytes as people read them."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} B"


@dataclass(frozen=True)
class Edge:
    """A tensor of the arena that one call writes and others read.

    why: it goes through memory.
    """

    bytes: int
    writer: Call
    readers: tuple[Call, ...]
    why: str


def edges_of(program: Program) -> Iterator[Edge]:
    """The tensors between calls, in the order in which they are made.

    Where calls write parts of a tensor, the last of them.
    """
    writer: dict[int, Call] = {}
    readers: dict[int, dict[int, Call]] = {}
    for number, call in enumerate(program.calls):
        results = len(program.kernels[call.kernel].nest.results)
        given = len(call.arguments) - results
        for argument, place in enumerate(call.arguments):
            if place.storage is not Storage.ARENA:
                continue
            if argument >= given:
                writer[place.index] = call
            elif place.index in writer:
                readers.setdefault(place.index, {})[number] = call
    for buffer, call in writer.items():
        if buffer in readers:
            found = tuple(readers[buffer].values())
            why = program.apart.get(buffer, "it lies in several parts")
            yield Edge(program.buffers[buffer], call, found, why)


def print_edge(edge: Edge) -> str:
    """What goes through memory, and why."""
    names = [each.layer or each.kernel for each in edge.readers]
    line = f"{edge.writer.layer or edge.writer.kernel} -> {listed(names)}"
    return f"{line}: {size(edge.bytes)}: {edge.why}"
