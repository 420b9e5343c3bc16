"""Code for several CPUs of one kind in one file: runtime/levels.c takes one of them.

Each level is an object of its own, kernels and table, which shows its table alone; the
weights are one block, in which equal ones are there once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nanoloom.binary.assemble import Compiled
from nanoloom.binary.c_strings import c_string
from nanoloom.binary.executable import Identity, identity_c
from nanoloom.binary.link import Source, merged
from nanoloom.binary.object_symbols import localized
from nanoloom.binary.parameters import ParameterBlock
from nanoloom.binary.program_data import SHOWN, program_object
from nanoloom.binary.shared import runtime_objects
from nanoloom.binary.table import Buffer, ProgramTable
from nanoloom.cache import Cache
from nanoloom.interface.tensor import Space
from nanoloom.weights.derivations import flat
from nanoloom.weights.weight import Source as WeightSource
from nanoloom.weights.weight import Weight
from nanoloom.weights.weight_keys import weight_key


@dataclass
class CommonBlock(ParameterBlock):
    """The weights of all levels: of the same numbers, however often a model is read."""

    places: dict[str, int] = field(default_factory=dict[str, int])
    contents: dict[WeightSource, str] = field(default_factory=dict[WeightSource, str])

    def offset(self, weight: Weight, *, walked: bool = True) -> int:
        name = weight_key(flat(weight), self.contents)
        if name not in self.places:
            self.places[name] = super().offset(weight, walked=walked)
        return self.places[name]


def in_one(levels: Sequence[tuple[Identity, Compiled]], cache: Cache) -> Compiled:
    """One program of several, the least level first.

    Raises Error if ziglang is missing or the disk refuses.
    """
    block = CommonBlock()
    tables = [moved(made.table, made.parameters, block) for _, made in levels]
    tables = [replace(table, parameter_bytes=block.size) for table in tables]
    objects = [
        level_object(made.objects, table, number, identity, cache)
        for number, ((identity, made), table) in enumerate(
            zip(levels, tables, strict=True)
        )
    ]
    text = levels_c([identity for identity, _ in levels])
    sources = (
        Source("levels_table", text),
        Source.of_runtime("levels"),
        Source.of_runtime("isa"),
        Source.of_runtime("trial"),
    )
    last = tables[-1]
    most = max(table.arena_bytes for table in tables)
    return Compiled(objects, replace(last, arena_bytes=most), block, sources)


def moved(
    table: ProgramTable, parameters: ParameterBlock, block: CommonBlock
) -> ProgramTable:
    """A table whose weights lie where the block of all levels has them."""
    begins = sorted(parameters.entries.values())
    places = {at: block.offset(x) for x, at in parameters.entries.items()}

    def there(buffer: Buffer) -> Buffer:
        if buffer.space is not Space.PARAMETERS:
            return buffer
        begin = begins[bisect_right(begins, buffer.offset) - 1]
        return replace(buffer, offset=places[begin] + buffer.offset - begin)

    return replace(table.with_buffers(there), parameter_bytes=block.size)


def level_object(
    objects: Sequence[bytes],
    table: ProgramTable,
    number: int,
    identity: Identity,
    cache: Cache,
) -> bytes:
    """A level's kernels and table: an object that shows the table by a name with its
    number, so that kernels of two levels may have the same name."""
    suffix = f"_{number}"
    beside = objects or runtime_objects(identity.target.triple, cache)
    made = program_object(
        table,
        beside[0],
        parameters_inside=table.parameter_bytes > 0,
        suffix=suffix,
    )
    whole = merged([made, *objects], identity.target.name, cache)
    return localized(whole, [name + suffix for name in SHOWN])


def only_level(identity: Identity) -> tuple[Source, ...]:
    """C with which a library for one target refuses a CPU that it would not run on."""
    text = f"""\
#include "identity.h"
static const char *const levels[] = {{{c_string(identity.target.name)}, 0}};
{identity_c(identity, "_0")}"""
    files = map(Source.of_runtime, ("one_level", "isa", "trial"))
    return Source("only_level", text), *files


def levels_c(levels: Sequence[Identity]) -> str:
    """C source that defines `nanoloom_levels`, to be compiled beside levels.h."""
    names = "".join(f"{c_string(level.target.name)}, " for level in levels)
    lines = [
        '#include "levels.h"',
        f"static const char *const levels[] = {{{names}0}};",
    ]
    rows: list[str] = []
    for number, level in enumerate(levels):
        program, sizes = (f"{name}_{number}" for name in SHOWN)
        lines += [
            identity_c(level, f"_{number}"),
            f"extern const struct nanoloom_program {program};",
            f"extern const struct nanoloom_sizes *const {sizes};",
        ]
        rows.append(f"    {{&nanoloom_identity_{number}, &{program}, &{sizes}}},")
    table = [
        "const struct nanoloom_level nanoloom_levels[] = {",
        *rows,
        "    {0, 0, 0},",
    ]
    return "\n".join([*lines, *table, "};", ""])
