"""Which outputs of a model are inputs of its next call, longer along one axis."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from nanoloom.errors import InputError
from nanoloom.interface.expressions import evaluate
from nanoloom.interface.interface import Interface
from nanoloom.interface.stacked_names import Index, named_part
from nanoloom.runtime.arrays import empty

Array: TypeAlias = np.ndarray

# What exporters write in the names of inputs, and of the outputs that extend them.
CALLED = (("past_key_values", "present"), ("past", "present"))
CHOOSER = "use_cache_branch"
LINE = 64  # bytes, of cache: so many rows of any size end with one


@dataclass(frozen=True)
class StatePair:
    """past: an input.  present: the output that is longer along `axis`."""

    past: Interface
    present: str
    axis: int

    @property
    def length(self) -> str:
        """The name of the dimension that grows."""
        return str(self.past.shape[self.axis])

    def shape(self, dims: Mapping[str, int], length: int) -> tuple[int, ...]:
        """Of the input; raises InputError for a dimension that no other input has."""
        found: list[int] = []
        for axis, d in enumerate(self.past.shape):
            number = length if axis == self.axis else d
            number = evaluate(number, dims) if isinstance(number, str) else number
            if number is None:
                raise InputError(
                    f"no other input says what dimension {d} is",
                    where=f"input {self.past.name}",
                    hint=f"give compile dims={{{d!r}: ...}}",
                )
            found.append(number)
        return tuple(found)

    def rows(self, shape: Sequence[int]) -> tuple[int, ...]:
        """What of a shape is kept for each token."""
        return tuple(n for axis, n in enumerate(shape) if axis != self.axis)

    def part(self, rows: Array, index: Index) -> Array:
        """Rows of a part of the input."""
        others = [i for axis, i in enumerate(index) if axis != self.axis]
        return rows[(slice(None), *(slice(None) if i is None else i for i in others))]

    def memory(self, count: int, rows: Sequence[int], index: Index) -> Array:
        """Rows in one block, in which those of each part lie behind each other.

        count: of rows; there are more where parts would begin within a line of cache.
        index: of any part.
        """
        others = [i for axis, i in enumerate(index) if axis != self.axis]
        chosen = [d for d, i in enumerate(others, 1) if i is not None]
        order = [*chosen, *(d for d in range(len(rows) + 1) if d not in chosen)]
        if chosen:
            count += -count % LINE
        shape = count, *rows
        block = empty(tuple(shape[d] for d in order), self.past.dtype)
        return block.transpose(np.argsort(order))


def pairs_of(
    inputs: Sequence[Interface],
    outputs: Sequence[Interface],
    said: Mapping[str, str] | None,
) -> tuple[StatePair, ...]:
    """The inputs that are kept.  said: names of them and of their outputs.

    Without `said`, found by name, and an encoder's are none of them (`stays_of`).
    Raises InputError where there are none.
    """
    sources = {x.name: x for x in inputs}
    made = {x.name: x for x in outputs}
    pairs = dict(said or {})
    if said is None:
        found, stays = by_name(sources, made), stays_of(inputs, outputs)
        pairs = {x: y for x, y in found.items() if x not in stays} or found
    for past, present in pairs.items():
        if past not in sources or present not in made:
            raise InputError(f"{past} is no input, or {present} no output")
    if not pairs:
        raise InputError(
            "the model has no input and output that are named past and present",
            hint="say which belong together, in Python: "
            'session(pairs={"past": "present"}) or save(..., session={...})',
        )
    others = {d for x in inputs if x.name not in pairs for d in x.shape}
    return tuple(
        StatePair(sources[past], present, growing(sources[past], others))
        for past, present in pairs.items()
    )


def given_once(
    inputs: Sequence[Interface], kept: Sequence[StatePair], said: Collection[str] | None
) -> frozenset[str]:
    """The inputs that stay from call to call: what was computed of another text.

    Without `said`, those that exporters name encoder: its keys and values, its states,
    its mask.  Raises InputError for a name that no input has, or that is kept.
    """
    grows = {x.past.name for x in kept}
    names = [x.name for x in inputs if x.name not in grows]
    if said is None:
        return frozenset(name for name in names if "encoder" in name)
    for name in said:
        if name not in names:
            raise InputError(f"{name} is no input, or grows at each call")
    return frozenset(said)


def stays_of(
    inputs: Sequence[Interface], outputs: Sequence[Interface]
) -> dict[str, str]:
    """Inputs of an encoder's keys and values, and the outputs that make them.

    They are as long in all calls: an output says so by the names of its dimensions, or
    the model by a branch for the first tokens.
    """
    sources = {x.name: x for x in inputs}
    made = {x.name: x for x in outputs}
    branches = chooser_of(inputs) is not None
    return {
        past: present
        for past, present in by_name(sources, made).items()
        if "encoder" in past
        and (branches or sources[past].shape == made[present].shape)
    }


def chooser_of(inputs: Sequence[Interface]) -> Interface | None:
    """The input that says whether something is kept; a branch of the model is for each.

    Exporters write it where they merge a decoder for prompts and one for tokens.
    """
    found = next((x for x in inputs if x.name == CHOOSER), None)
    is_one = found is not None and found.dtype == bool and set(found.shape) <= {1}
    return found if is_one else None


def with_sums(
    inputs: Sequence[Interface], outputs: Sequence[Interface], kept: Sequence[StatePair]
) -> list[Interface]:
    """The inputs; a dimension that outputs are long is the sum of what is kept and new.

    A mask of `total` numbers has `past + new` of them, if outputs are `total` long.
    """
    first = kept[0]
    made = next(x for x in outputs if x.name == first.present)
    pasts = {d for x in kept for d in x.past.shape}
    total = made.shape[first.axis] if len(made.shape) > first.axis else 0
    open_dims = [d for x in inputs for d in x.shape if isinstance(d, str)]
    new = {d for d in open_dims if d not in pasts and d != total}
    if total not in open_dims or len(new) != 1:
        return list(inputs)
    (count,) = new
    words: dict[int | str, int | str] = {total: f"{first.length} + {count}"}
    return [replace(x, shape=tuple(words.get(d, d) for d in x.shape)) for x in inputs]


def found_in(arrays: Mapping[str, object], name: str) -> object | None:
    """The array of an input, by its name or by that of the output it is made of."""
    wanted = [name, *(name.replace(a, b) for a, b in CALLED if a in name)]
    return next((arrays[x] for x in wanted if x in arrays), None)


def by_name(
    sources: Mapping[str, object], made: Mapping[str, object]
) -> dict[str, str]:
    """Inputs and outputs whose names differ as exporters let them."""
    found: dict[str, str] = {}
    for name in sources:
        wanted = [name.replace(a, b) for a, b in CALLED if a in name]
        present = next((x for x in wanted if x in made), None)
        if present is not None:
            found[name] = present
    return found


def of_parts(tensors: Sequence[Interface]) -> list[Interface]:
    """A program's inputs with what is stacked as one again; its outputs by name."""
    found: dict[str, Interface] = {}
    for x in tensors:  # of the parts the last is counted furthest
        name, index = named_part(x.name)
        sizes = iter(x.shape)
        shape = tuple(next(sizes) if i is None else i + 1 for i in index)
        found[name] = replace(x, name=name, shape=shape) if index else x
    return list(found.values())


def growing(past: Interface, others: set[int | str]) -> int:
    """The axis of an input that no other input has, which is how long it is."""
    axes = [
        axis
        for axis, d in enumerate(past.shape)
        if isinstance(d, str) and d not in others
    ]
    if len(axes) != 1:
        raise InputError(
            f"{len(axes)} of its dimensions are its own, and one should grow",
            where=f"input {past.name}",
            hint="name its dimensions: the batch as in the other inputs",
        )
    return axes[0]
