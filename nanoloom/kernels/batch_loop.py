"""A program of one row of a batch, run once for each row of any batch.

In:  the program of a model bound to a batch of 1.
Out: the same calls, repeated; inputs and outputs are a row further each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.polynomial import Size
from nanoloom.interface.bounds import Bounds
from nanoloom.kernels.program import Program, ProgramSizes
from nanoloom.linalg.stage import Spec
from nanoloom.memory.calls import NONE, Call, Place, Repeated, Storage


def batched_program(
    program: Program, name: str, rows: Sequence[bool], bounds: Bounds
) -> Program:
    """The program for any batch, which has this name.

    rows: of each input whether its first axis is the batch.  Raises Differs for a
    program that cannot be repeated.
    """
    if program.repeats:
        raise NotDynamic("its recurrences run for known sizes, not row by row")
    if program.checks:  # a later row's word would take the place of an earlier one's
        raise NotDynamic("its indices could be looked at in one row of the batch only")
    inputs = [x.shape[0] if r else 0 for x, r in zip(program.inputs, rows, strict=True)]
    outputs = [x.shape[0] for x in program.outputs]
    words = list(dict.fromkeys([1, *inputs, *outputs]))
    words = [n for n in words if n]
    strides = {
        Storage.INPUT: [
            bytes_of(x) if n else 0 for x, n in zip(program.inputs, inputs, strict=True)
        ],
        Storage.OUTPUT: [bytes_of(x) for x in program.outputs],
    }

    def moved(call: Call) -> Call:
        return replace(call, arguments=tuple(map(place, call.arguments)))

    def place(each: Place) -> Place:
        found = strides.get(each.storage)
        return each if found is None else replace(each, stride=found[each.index])

    return replace(
        program,
        calls=tuple(map(moved, program.calls)),
        repeats=(Repeated(0, len(program.calls), 1, words.index(1)),),
        sizes=ProgramSizes(
            (name,),
            tuple(Size(((n, (name,)),)) for n in words),
            (),
            tuple(
                axes(x, words.index(n) if n else NONE)
                for x, n in zip(program.inputs, inputs, strict=True)
            ),
            tuple(
                axes(x, words.index(n))
                for x, n in zip(program.outputs, outputs, strict=True)
            ),
            (bounds,),
        ),
    )


def bytes_of(spec: Spec) -> int:
    """Of all that one row has."""
    size = spec.dtype.itemsize
    for n in spec.shape:
        size *= n
    return size


def axes(spec: Spec, word: int) -> tuple[int, ...]:
    """Which word each axis is: the first one of rows."""
    return (word, *(NONE,) * len(spec.shape))[: len(spec.shape)]
