"""Which tensors go through memory between kernels, and why they do.

The reason is read off the schedule of the first reader: what one of its steps takes.
"""

from __future__ import annotations

from collections.abc import Mapping

from nanoloom.explain.report import NotFused
from nanoloom.kernels.program import Program
from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.print_fusions import Edge, edges_of, listed, share_of_step

ALL = 0.99  # of a tensor, in a step


def not_fused(
    program: Program, nests: Mapping[str, LoopNest]
) -> dict[str, list[NotFused]]:
    """By the kernels that write them.  nests: of the kernels, as scheduled."""
    found: dict[str, list[NotFused]] = {}
    for edge in edges_of(program):
        readers = tuple(call.layer or call.kernel for call, _ in edge.readers)
        said = NotFused(readers, edge.bytes, reason(edge, program, nests))
        rows = found.setdefault(edge.writer.kernel, [])
        if said not in rows:
            rows.append(said)
    return found


def reason(edge: Edge, program: Program, nests: Mapping[str, LoopNest]) -> str:
    """Why a tensor's writer and its readers are kernels of their own."""
    reader, argument = edge.readers[0]
    writer = edge.writer.kernel
    names = [call.layer or call.kernel for call, _ in edge.readers]
    if len(edge.readers) > 1:
        return f"{len(names)} kernels read it: {listed(names)}"
    nest = nests.get(reader.kernel)
    step = None if nest is None else share_of_step(nest, argument)
    if nest is None or step is None:
        return "where its reader reads it is not known from its loops"
    size, times = step
    if times > 1.01:
        return f"inside of its reader it would be computed {times:.3g} times"
    if size >= ALL * edge.bytes:
        return "one step of its reader reads all of it"
    roots = [program.kernels[name].root for name in (writer, reader.kernel)]
    return f"no rule joins the kinds {roots[0]} and {roots[1]} in these shapes"
