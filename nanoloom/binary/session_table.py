"""The table of a session: what it keeps itself stands behind what its caller brings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from nanoloom.binary.sizes import SizesTable
from nanoloom.binary.table import Buffer, ProgramTable
from nanoloom.interface.tensor import Space, Tensor


def session_table(
    table: ProgramTable, pairs: Sequence[tuple[str, str]], lengths: Collection[str]
) -> ProgramTable:
    """The same calls, with inputs, outputs and dimensions in another order.

    pairs: names of inputs, and of the outputs that extend them; they come last, in this
    order.  lengths: the dimensions that say how much is kept; they come last, too.
    """
    assert table.sizes is not None, "what is kept has a length"
    pasts, presents = zip(*pairs, strict=True)
    order = {
        Space.INPUT: after_inputs(table.inputs, pasts),
        Space.OUTPUT: after_inputs(table.outputs, presents),
    }

    def moved(buffer: Buffer) -> Buffer:
        places = order.get(buffer.space)
        return replace(buffer, index=places.index(buffer.index)) if places else buffer

    return replace(
        table.with_buffers(moved),
        inputs=tuple(table.inputs[i] for i in order[Space.INPUT]),
        outputs=tuple(table.outputs[i] for i in order[Space.OUTPUT]),
        sizes=longer(table.sizes, lengths),
        kept=len(pairs),
    )


def after_inputs(tensors: Sequence[Tensor], names: Sequence[str]) -> list[int]:
    """Where tensors stood, those of these names last."""
    places = {x.name: i for i, x in enumerate(tensors)}
    others = [i for name, i in places.items() if name not in names]
    return others + [places[name] for name in names]


def longer(sizes: SizesTable, lengths: Collection[str]) -> SizesTable:
    """The sizes with those of what is kept behind the others."""
    dims = sorted(sizes.dims, key=lambda name: name in lengths)
    return replace(
        sizes,
        dims=tuple(dims),
        bounds=tuple(sizes.bounds_of(name) for name in dims),
        grown=sum(name in lengths for name in dims),
    )
