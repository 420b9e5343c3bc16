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
from nanoloom.nest.steps import bytes_inside, steps_of, whole
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
    apart = [print_edge(edge, nests) for edge in edges_of(program)]
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

    argument: which of each reader's arguments it is.
    """

    bytes: int
    writer: Call
    readers: tuple[tuple[Call, int], ...]


def edges_of(program: Program) -> Iterator[Edge]:
    """The tensors between calls, in the order in which they are made.

    Where calls write parts of a tensor, the last of them.
    """
    writer: dict[int, Call] = {}
    readers: dict[int, dict[int, tuple[Call, int]]] = {}
    for number, call in enumerate(program.calls):
        results = len(program.kernels[call.kernel].nest.results)
        given = len(call.arguments) - results
        for argument, place in enumerate(call.arguments):
            if place.storage is not Storage.ARENA:
                continue
            if argument >= given:
                writer[place.index] = call
            elif place.index in writer:
                readers.setdefault(place.index, {})[number] = (call, argument)
    for buffer, call in writer.items():
        if buffer in readers:
            found = tuple(readers[buffer].values())
            yield Edge(program.buffers[buffer], call, found)


def print_edge(edge: Edge, nests: Mapping[str, LoopNest]) -> str:
    """What goes through memory, and what its first reader takes of it in a step."""
    call, argument = edge.readers[0]
    nest = nests.get(call.kernel)
    taken = None if nest is None else share_of_step(nest, argument)
    names = [each.layer or each.kernel for each, _ in edge.readers]
    line = f"{edge.writer.layer or edge.writer.kernel} -> {listed(names)}: "
    line += size(edge.bytes)
    if taken is None:
        return line
    step, loops = taken
    many = f"; read {loops:.3g} times in all" if loops > 1.01 else "; read once"
    line += f", {size(step)} in a step of its reader's outermost loop{many}"
    return f"{line}: {reason_apart(edge, step, loops)}"


def reason_apart(edge: Edge, step: int, loops: float) -> str:
    """Why what is read so is not made inside of its reader.

    step: bytes of a step of the reader.  loops: how often all steps read it.
    """
    if len(edge.readers) > 1:
        return f"{len(edge.readers)} kernels read it, and each would make it again"
    if step >= edge.bytes:
        return "a step needs all of it"
    if loops > 1.01:
        return f"it would be made {loops:.3g} times"
    return "each step needs its own part alone, but nothing joins two such kernels"


def share_of_step(nest: LoopNest, argument: int) -> tuple[int, float] | None:
    """Bytes of an argument in a step of its reader's outermost loop, and how often the
    steps read it in all; None where no stage reads it."""
    buffer = next((b for b in nest.buffers if b.argument == argument), None)
    if buffer is None:
        return None
    for stage in nest.stages:
        if buffer.name in stage.sources:
            steps = steps_of(nest, stage)
            if not steps:
                return None
            all_bytes = bytes_inside(nest, stage, whole(stage))
            inside = bytes_inside(nest, stage, steps[0].sizes)[buffer.name]
            return inside, steps[0].times * inside / max(1, all_bytes[buffer.name])
    return None
