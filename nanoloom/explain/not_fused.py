"""Which tensors go through memory between kernels, and why they do."""

from __future__ import annotations

from nanoloom.explain.report import NotFused
from nanoloom.kernels.program import Program
from nanoloom.schedule.print_fusions import edges_of


def not_fused(program: Program) -> dict[str, list[NotFused]]:
    """By the kernels that write them; why is what the rules of fusion said."""
    found: dict[str, list[NotFused]] = {}
    for edge in edges_of(program):
        names = (call.layer or call.kernel for call in edge.readers)
        readers = tuple(dict.fromkeys(names))  # some read it row by row
        said = NotFused(readers, edge.bytes, edge.why)
        rows = found.setdefault(edge.writer.kernel, [])
        if said not in rows:
            rows.append(said)
    return found
