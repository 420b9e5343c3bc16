"""Why a tensor between kernels is not made in its reader, where no rule was about it.

t = a product;    y = a product of t     reads t for each column of y
t = sums of x;    y = x / t              reads t for each number of a row of x
"""

from __future__ import annotations

from math import prod

from nanoloom.fusion.group import Group
from nanoloom.fusion.group_values import external_inputs, group_results
from nanoloom.fusion.insert_in_place import INSERT, home
from nanoloom.ir.linalg_query import (
    Op,
    base,
    bordered,
    bytes_of,
    extents,
    inputs,
    is_contraction,
    is_generic,
    is_pad,
    map_dims,
    maps,
)
from nanoloom.ir.mlir import ir, made_by


def explain_unfused(groups: list[Group], *, known: bool) -> None:
    """Give what groups read of others its reason, unless a rule gave one.

    known: whether all sizes are; those of samples are in no reason.
    """
    made = {home(base(v)): group for group in groups for v in group_results(group)}
    readers: dict[ir.Value, list[tuple[Group, ir.Value]]] = {}
    for group in groups:
        for value in external_inputs(group):
            if made.get(home(base(value)), group) is not group:
                readers.setdefault(home(base(value)), []).append((group, value))
    for found in readers.values():
        for group, value in found:
            why = f"{len(found)} kernels read it, and each would make it again"
            if len(found) == 1:
                why = reason(group, value, known=known)
            group.apart.setdefault(value, why)


def reason(group: Group, value: ir.Value, *, known: bool) -> str:
    """Why a group does not make what it alone reads."""
    if made_by(base(value), INSERT) is not None:
        return "it lies beside a border or other parts, which are made elsewhere"
    reader = first_reader(group, value)
    times = 1 if reader is None else times_read(reader, value)
    if reader is not None and times > 1:
        return read_often(reader, value, f"{times:,}" if known else "several")
    if value != base(value):
        return "it is read in another shape"
    return "no part of it is all that a step of its reader's loops reads"


def first_reader(group: Group, value: ir.Value) -> Op | None:
    """The loops that read a value first, None where others than loops do."""
    for op in group.ops:
        if is_generic(op) and value in map(inside_border, inputs(op)):
            return op
    return None


def inside_border(value: ir.Value) -> ir.Value:
    """The tensor that a value has a border around: the value itself for no border."""
    made = made_by(value)
    return bordered(made.opview)[0] if made and is_pad(made.opview) else value


def times_read(reader: Op, value: ir.Value) -> int:
    """How often loops read each number of a value, in the mean."""
    size = prod(ir.RankedTensorType(value.type).shape)
    return prod(extents(reader)) // size if size > 0 else 1


def read_often(reader: Op, value: ir.Value, times: str) -> str:
    """The reason where a number is read more than once.

    Blocks of a product's rows read a number once, and its other operand each; those of
    windows share numbers.
    """
    text = f"its reader reads each number {times} times, and would compute it as often"
    ways = zip(inputs(reader), maps(reader), strict=False)
    plain = all(None not in map_dims(x) for v, x in ways if inside_border(v) == value)
    others = [x for x in inputs(reader)[:2] if inside_border(x) != value]
    if not is_contraction(reader) or not others or not plain:
        return text
    bytes_ = f"{bytes_of(others[0].type):,} B" if times != "several" else "all"
    return f"{text}, or read {bytes_} of its other operand for each block of rows"
