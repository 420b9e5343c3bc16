"""A group of operations as a function of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from nanoloom.fusion.coalesce_loops import coalesce_loops
from nanoloom.fusion.constants_to_arguments import (
    NONE,
    Arguments,
    constants_to_arguments,
)
from nanoloom.fusion.group import Group
from nanoloom.fusion.group_values import (
    defined_below,
    external_inputs,
    group_results,
    outermost,
)
from nanoloom.fusion.insert_in_place import Insertion, home, part_of
from nanoloom.fusion.multiple_results import passing
from nanoloom.ir.known_factors import write_factors
from nanoloom.ir.linalg_query import (
    Op,
    base,
    extents,
    is_contraction,
    is_generic,
    iterators,
)
from nanoloom.ir.mlir import func, ir, made_by
from nanoloom.linalg.builder.loops import FIRST
from nanoloom.linalg.builder.pointwise import itself, pointwise
from nanoloom.weights.chunked_conversion import Array

NODE = re.compile(r'"([^"]+)"(?!:\d)')  # in a location: names, no places in files
NOWHERE: Mapping[ir.Value, ir.Value] = MappingProxyType({})
DESTINATION = {"tensor.insert_slice": 1}  # operand that the result is written over


def outline(
    group: Group,
    constants: tuple[bool, ...],
    factors: Sequence[Array | None] = (),
    numbers: Arguments = NONE,
    *,
    over: Mapping[ir.Value, ir.Value] = NOWHERE,
    flat: bool = False,
    known_sizes: bool = False,
) -> ir.Module:
    """A module with @kernel(inputs..., numbers..., results...) -> results for a group.

    constants: which inputs are parameters; factors: numbers of some.  over: of results,
    the values in whose memory they are; these are no inputs.  flat: axes become one in
    any kernel.  known_sizes: in others, too (coalesce_loops.py).
    """
    values = [v for v in external_inputs(group) if v not in over.values()]
    results = group_results(group)
    parts, places = [part_of(r) for r in results], [lies_in(v) for v in values]
    made_kinds = [home(r).type for r in results]
    known = (*constants, *[True for _ in numbers.types])
    read = zip(values, places, strict=True)
    read_kinds = [home(base(v)).type if part else v.type for v, part in read]
    kinds = [*read_kinds, *numbers.kinds(), *made_kinds]
    module, entry = empty_kernel(kinds, made_kinds)
    kernel = module.body.operations[0]
    kernel.attributes["arg_attrs"] = argument_attributes(known, len(results))
    with ir.InsertionPoint(entry), ir.Location.unknown():
        given = zip(values, entry.arguments, places, strict=False)
        mapping = {value: shown(value, at, part) for value, at, part in given}
        targets = list(entry.arguments)[len(known) :]
        placed = zip(results, targets, strict=True)
        mapping |= {over[r]: x for r, x in placed if r in over}
        *before, last = group.ops
        for op in before:
            clone(op.operation, mapping)
        made_last = clone(last.operation, mapping).opview
        pass_results(results, last, made_last, mapping)
        made = zip(results, parts, targets, strict=True)
        func.ReturnOp(
            [mapping[r] if r in over else written(mapping[r], part, target)
             for r, part, target in made]
        )  # fmt: skip
    if numbers.types:
        constants_to_arguments(
            module, numbers, list(entry.arguments)[len(values) : len(known)]
        )
    coalesce_loops(module, every=flat, known_sizes=known_sizes)
    write_factors(entry, factors)
    return module


def empty_kernel(
    kinds: list[ir.Type], made: list[ir.Type]
) -> tuple[ir.Module, ir.Block]:
    """A module with a function of these types, and its block."""
    module = ir.Module.create(ir.Location.unknown())
    with ir.InsertionPoint(module.body):
        kernel = func.FuncOp("kernel", ir.FunctionType.get(kinds, made))
        return module, kernel.add_entry_block()


def pass_results(
    results: list[ir.Value], last: Op, copied: Op, mapping: dict[ir.Value, ir.Value]
) -> None:
    """Let a kernel's copy of the last operation write all of its results.

    mapping: the kernel's values of those outside; changed as the operation is.
    """
    own = list(last.operation.results)
    passed = [r for r in results if r not in own]
    if passed:
        made = passing(copied, [mapping[r] for r in passed])
        mapping |= dict(zip([*own, *passed], made, strict=True))


def is_table(argument: ir.Value) -> bool:
    """Whether nothing but single elements of it is read, where indices say."""
    readers = {use.owner.name for use in argument.uses}
    return readers == {"tensor.extract"}


def argument_attributes(constants: tuple[bool, ...], results: int) -> ir.ArrayAttr:
    unit = {"bufferization.writable": ir.BoolAttr.get(False)}
    known = {**unit, "nanoloom.constant": ir.UnitAttr.get()}
    written = {"bufferization.writable": ir.BoolAttr.get(True)}
    return ir.ArrayAttr.get(
        [ir.DictAttr.get(known if c else unit) for c in constants]
        + [ir.DictAttr.get(written)] * results
    )


def clone(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Copy an operation to the insertion point, with what is free to make again."""
    copied = op.clone()
    remap(op, copied, mapping, op)
    for old, new in zip(op.results, copied.results, strict=True):
        mapping[old] = new
    return copied


def remap(
    old: ir.Operation,
    new: ir.Operation,
    mapping: dict[ir.Value, ir.Value],
    root: ir.Operation,
) -> None:
    """Give a copied operation (part of `root`) the operands of its new function."""
    for i, value in enumerate(old.operands):
        owner = value.owner
        if value in mapping:
            new.operands[i] = mapping[value]
        elif not isinstance(owner, ir.Block) and not defined_below(value, {root}):
            with ir.InsertionPoint(outermost(new)):
                made = clone(owner, dict(mapping))  # each use gets its own
            new.operands[i] = made.results[0]
    for region, other in zip(old.regions, new.regions, strict=True):
        for block, twin in zip(region.blocks, other.blocks, strict=True):
            for inner, copied in zip(block.operations, twin.operations, strict=True):
                remap(inner.operation, copied.operation, mapping, root)


def lies_in(value: ir.Value) -> Insertion | None:
    """Where a value, maybe in another shape, lies in a larger one; None if in none."""
    return part_of(base(value))


def shown(value: ir.Value, argument: ir.Value, part: Insertion | None) -> ir.Value:
    """A value that a kernel reads: its argument, or a part at the beginning of it."""
    return argument if part is None else part.first.read(argument, value.type)


def written(value: ir.Value, part: Insertion | None, result: ir.Value) -> ir.Value:
    """A result argument with a value in it, or at the beginning of it.

    Where a part begins is the caller's: it gives the kernel that place.
    """
    if part is None:
        return write_into(value, result)
    part = part.first
    block = result.owner
    assert isinstance(block, ir.Block)
    with ir.InsertionPoint.at_block_begin(block):
        target = part.read(result, value.type)
    return part.write(write_into(value, target), result)


def write_into(value: ir.Value, result: ir.Value) -> ir.Value:
    """Let the last operation write over the result argument, or copy into it."""
    made, op = value, value.owner
    while not isinstance(op, ir.Block):
        place = destination(op.opview, made)
        if place is None:
            break
        target = op.operands[place]
        empty = made_by(target, "tensor.empty")
        if empty is not None:
            op.operands[place] = result
            if not list(target.uses):  # its shape would tell kernels apart
                empty.erase()
            return value
        made, op = target, target.owner
    return pointwise([value], result, itself)


def destination(op: Op, value: ir.Value) -> int | None:
    """Which operand a result is written over."""
    if op.operation.name in DESTINATION:
        return DESTINATION[op.operation.name]
    if op.operation.name in FIRST:  # a loop's results are settled where they began
        return FIRST[op.operation.name] + list(op.operation.results).index(value)
    if is_generic(op):
        results = list(op.operation.results)
        return len(list(op.operation.operands)) - len(results) + results.index(value)
    return None


def describe(group: Group) -> str:
    """A name that carries the root's kind, element type and extents."""
    roots = [op for op in group.ops if is_generic(op)]
    if not roots:
        return "opaque"
    root = max(roots, key=lambda op: len(iterators(op)))
    element = ir.ShapedType(root.operation.operands[0].type).element_type
    return f"{root_of(group)}_{element}_{'x'.join(map(str, extents(root)))}"


def root_of(group: Group) -> str:
    """What a group is made around, in a word: of several products, contractions."""
    products = [op for op in group.ops if is_generic(op) and is_contraction(op)]
    return f"{group.root.value}{'s' * (len(products) > 1)}"


def layer_of(group: Group) -> str:
    """The model's node that the group's main operation comes from.

    None in front of a product.
    """
    made = [is_generic(op) and is_contraction(op) for op in group.ops]
    behind = group.ops[made.index(True) if True in made else 0 :]
    ops = sorted(behind, key=lambda op: -len(op.operation.operands))
    return next(filter(None, (layer_at(op.operation) for op in ops)), "")


def nodes_of(group: Group) -> tuple[str, ...]:
    """The model's nodes that the group's operations come from, in their order."""
    places = (str(op.operation.location) for op in group.ops)
    found = (name for text in places for name in NODE.findall(text))
    return tuple(dict.fromkeys(found))


def layer_at(op: ir.Operation | ir.Block) -> str:
    """The model's node that an operation comes from, "" if it has no name."""
    text = "" if isinstance(op, ir.Block) else str(op.location)
    return text[5:-2] if text.startswith('loc("') else ""


def shape_of(value: ir.Value) -> str:
    kind = ir.RankedTensorType(value.type)
    return "x".join(map(str, (kind.element_type, *kind.shape)))


def text_of(module: ir.Module) -> str:
    return module.operation.get_asm(enable_debug_info=False)
