"""The one program that a file holds, whatever its inputs are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nanoloom.errors import DataDependent, InputError, ModelError, Unsupported

if TYPE_CHECKING:
    from nanoloom.api.program import Program
    from nanoloom.binary.assemble import Compiled
    from nanoloom.binary.output_forms import Form
    from nanoloom.model.source import Source


def to_save(
    program: Program, form: Form, shapes: Mapping[str, tuple[int, ...]] | None
) -> Compiled:
    """The program as it is called from Python, where that is one for all inputs.

    Where each value of an input chooses a branch and has a program of its own, one
    with both branches.
    """
    try:
        return program.bound(form, shapes)
    except (DataDependent, InputError) as error:
        if not has_branches(program.source):
            raise
        try:
            return program.with_options(any_value=True).bound(form, shapes)
        except (InputError, ModelError, Unsupported):
            raise error from None  # the reason of the usual way, which users know


def has_branches(source: Source) -> bool:
    graph = getattr(source.model(), "graph", None)
    return graph is not None and any(n.op_type == "If" for n in graph.all_nodes())
