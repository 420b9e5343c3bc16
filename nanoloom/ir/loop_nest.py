"""The loop nest of a kernel, read from its linalg operations.

Each `linalg.generic` of the kernel's body is a stage.  It gets a name, which stands in
the IR as well (`nanoloom.stage = "product"`), so that a script finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from nanoloom.ir.body_facts import added_pairs, is_call
from nanoloom.ir.kernel_results import results_of
from nanoloom.ir.linalg_query import (
    CROPPED,
    DIFFERING,
    Op,
    body,
    bordered,
    dims_of,
    extents,
    filled_with,
    input_count,
    inputs,
    is_contraction,
    is_copy,
    is_fill,
    is_generic,
    is_lanewise,
    is_pad,
    is_read_in_place,
    iterators,
    maps,
    outputs,
)
from nanoloom.ir.mlir import ir
from nanoloom.ir.semiring import semiring_of
from nanoloom.ir.statement_names import AXES, FACTORS, NAME
from nanoloom.nest.index import Access, Index
from nanoloom.nest.nest import Buffer, LoopNest, Role
from nanoloom.nest.statement import Axis, AxisKind, Statement

STAGE = "nanoloom.stage"  # a discardable attribute: the stage's name
SIGNS = {"arith.extsi": "s", "arith.extui": "u"}


def name_stages(module: ir.Module) -> None:
    """Write a name into every stage of a kernel's module."""
    taken: dict[str, int] = {}
    for op in stages_of(module):
        word = word_of(op)
        taken[word] = taken.get(word, 0) + 1
        name = word if taken[word] == 1 else f"{word}_{taken[word]}"
        op.operation.attributes[STAGE] = ir.StringAttr.get(name)


def read_nest(module: ir.Module) -> LoopNest:
    """The nest of a kernel whose stages have names."""
    kernel = module.body.operations[0]
    block = kernel.operation.regions[0].blocks[0]
    reader = Reader(kernel, block)
    stages = tuple(reader.stage(op) for op in stages_of(module))
    results = tuple(reader.result(*found) for found in results_of(kernel))
    return LoopNest(tuple(reader.buffers.values()), stages, results)


def stages_of(module: ir.Module) -> Iterator[Op]:
    """The generics of a kernel's body, in order."""
    block = module.body.operations[0].operation.regions[0].blocks[0]
    return (op for op in block.operations if is_generic(op))


def word_of(op: Op) -> str:
    """What a stage is called: as a person does, or by what it does."""
    if NAME in op.operation.attributes:
        return op.operation.attributes[NAME].value  # type: ignore[attr-defined]
    if is_fill(op):
        return "fill"
    if is_pad(op):
        return "pad"
    if is_copy(op):
        return "copy"
    if is_contraction(op):
        return "product"
    return "reduction" if "reduction" in iterators(op) else "point"


class Reader:
    """Gives buffers names while the stages of a kernel are read."""

    def __init__(self, kernel: Op, block: ir.Block) -> None:
        self.block = block
        words = kernel.operation.attributes["arg_attrs"]
        self.constant = ["nanoloom.constant" in w for w in words]  # type: ignore[union-attr]
        self.writable = [
            w["bufferization.writable"].value
            for w in words  # type: ignore[union-attr]
        ]
        self.buffers: dict[ir.Value, Buffer] = {}

    def buffer(self, value: ir.Value) -> str:
        """The name of a value's buffer."""
        if value not in self.buffers:
            self.buffers[value] = self.described(value)
        return self.buffers[value].name

    def result(self, value: ir.Value, lies_apart: bool) -> str:
        """The same, of what a kernel returns."""
        name = self.buffer(value)
        found = self.buffers[value]
        self.buffers[value] = replace(found, is_strided=lies_apart)
        return name

    def described(self, value: ir.Value) -> Buffer:
        if not isinstance(value.type, ir.RankedTensorType):
            name = f"number{len(self.buffers)}"
            return Buffer(name, (), str(value.type), Role.SCALAR)
        kind = ir.RankedTensorType(value.type)
        shape, element = tuple(kind.shape), str(kind.element_type)
        if isinstance(value.owner, ir.Block):
            number = list(self.block.arguments).index(value)
            role = Role.RESULT if self.writable[number] else Role.INPUT
            role = Role.CONSTANT if self.constant[number] else role
            return Buffer(f"arg{number}", shape, element, role, number)
        owner = value.owner
        name = f"temporary{len(self.buffers)}"
        if STAGE in owner.attributes:
            name = owner.attributes[STAGE].value  # type: ignore[attr-defined]
            several = len(list(owner.results)) > 1
            name += f".{list(owner.results).index(value)}" if several else ""
        return Buffer(name, shape, element, Role.TEMPORARY)

    def stage(self, op: Op) -> Statement:
        name = op.operation.attributes[STAGE].value  # type: ignore[attr-defined]
        made = stage_of(op, name, lambda value: self.buffer(source_of(value)))
        begins = [begin_of(value) for value in inputs(op)]
        reads = zip(made.reads, begins, strict=True)
        made = replace(made, reads=tuple(read.moved(begin) for read, begin in reads))
        if is_pad(op):
            source, places, number = bordered(op)
            source, begin = in_whole(source)
            kind = str(ir.RankedTensorType(source.type).element_type)
            at = indices(places, made.names)
            inside = Access(self.buffer(source), at, kind).moved(begin)
            made = replace(
                made,
                reads=(),
                inside=inside,
                outside=made.reads[0] if made.reads else number,
                cropped=CROPPED in op.operation.attributes,
            )
        return made


def source_of(value: ir.Value) -> ir.Value:
    """What a value is a slice of, itself if it is none."""
    owner = value.owner
    if isinstance(owner, ir.Block) or not is_read_in_place(owner.opview):
        return value
    return owner.operands[0]


def in_whole(value: ir.Value) -> tuple[ir.Value, tuple[int, ...]]:
    """What a slice that keeps all axes is of, and where in that it begins."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "tensor.extract_slice":
        return value, ()
    whole = owner.operands[0]
    ranks = {ir.RankedTensorType(x.type).rank for x in (whole, value)}
    if len(ranks) > 1:
        return value, ()
    return whole, tuple(owner.attributes["static_offsets"])  # type: ignore[arg-type] - MLIR's stubs know no kinds of attributes


def begin_of(value: ir.Value) -> tuple[int, ...]:
    """Where a slice begins in its source, () for what is none."""
    owner = value.owner
    if isinstance(owner, ir.Block) or source_of(value) == value:
        return ()
    return tuple(owner.attributes["static_offsets"])  # type: ignore[arg-type] - MLIR's stubs know no kinds of attributes


def alone(op: Op) -> Statement:
    """A generic anywhere as a stage: its buffers are called by their numbers."""
    values = [*op.operation.operands, *op.operation.results]
    return stage_of(op, "", lambda value: str(values.index(value)))


def stage_of(op: Op, name: str, buffer: Callable[[ir.Value], str]) -> Statement:
    """A generic as a stage of this name; buffer: the names of what it works on."""
    indexings, count, names = maps(op), input_count(op), names_of(op)
    reads = tuple(
        Access(buffer(value), indices(indexing, names), element(op, number))
        for number, (value, indexing) in enumerate(
            zip(inputs(op), indexings, strict=False)
        )
    )
    writes = tuple(
        Access(buffer(result), indices(indexing, names), element(op, count + number))
        for number, (result, indexing) in enumerate(
            zip(op.operation.results, indexings[count:], strict=True)
        )
    )
    return Statement(
        name,
        axes_of(op, names),
        reads,
        writes,
        tuple(start_of(value) for value in outputs(op)),
        tuple(made_by(value, buffer) for value in outputs(op)),
        semiring_of(op),
        is_lanewise(op),
        tuple(inner.operation.name for inner in body(op).operations)[:-1],
        tuple(
            str(inner.operation.results[0].type)
            for inner in body(op).operations
            if inner.operation.name == "tensor.extract"
        ),
        adds=tuple(added_pairs(op)),
        calls=any(map(is_call, body(op).operations)),
        factors=FACTORS in op.operation.attributes,
    )


def axes_of(op: Op, names: Sequence[str]) -> tuple[Axis, ...]:
    loops = zip(names, iterators(op), extents(op), strict=True)
    return tuple(Axis(name, AxisKind(kind), extent) for name, kind, extent in loops)


def names_of(op: Op) -> list[str]:
    """Of the loops of a generic: as a person calls them, or d0, d1, ..."""
    count = len(op.operation.attributes["iterator_types"])  # type: ignore[arg-type] - MLIR's stubs know no kinds of attributes
    if AXES in op.operation.attributes:
        names = [a.value for a in op.operation.attributes[AXES]]  # type: ignore[union-attr]
        if len(names) == count:
            return names
    return [f"d{d}" for d in range(count)]


def element(op: Op, number: int) -> str:
    """The element type of an operand, narrow integers by the sign of their widening.

    b8: eight bits, each a number, as products of bits have them.
    """
    kind = op.operation.operands[number].type
    if isinstance(kind, ir.ShapedType):
        kind = kind.element_type
    if not isinstance(kind, ir.IntegerType):
        return str(kind)
    users = {use.owner.operation.name for use in body(op).arguments[number].uses}
    if users == {DIFFERING} and is_contraction(op):
        return f"b{kind.width}"
    signs = {SIGNS[name] for name in users if name in SIGNS}
    return f"{signs.pop()}{kind.width}" if len(signs) == 1 else str(kind)


def indices(indexing: ir.AffineMap, names: Sequence[str]) -> tuple[Index, ...]:
    return tuple(index_of(expr, names) for expr in indexing.results)


def index_of(expr: ir.AffineExpr, axes: Sequence[str]) -> Index:
    """An affine expression as a value."""
    terms: list[tuple[str, int]] = []
    offset = 0
    for part, factor in parts(expr, 1):
        if isinstance(part, ir.AffineDimExpr):
            place: int = part.position
            terms.append((axes[place], factor))
        elif isinstance(part, ir.AffineConstantExpr):
            offset += part.value * factor
        else:
            used = tuple((axes[d], 0) for d in sorted(dims_of(expr)))
            return Index(used, 0, str(expr))
    return Index(tuple(terms), offset)


def parts(expr: ir.AffineExpr, factor: int) -> list[tuple[ir.AffineExpr, int]]:
    """What is added up in an expression, each with its factor."""
    if isinstance(expr, ir.AffineAddExpr):
        return parts(expr.lhs, factor) + parts(expr.rhs, factor)
    if isinstance(expr, ir.AffineMulExpr) and isinstance(
        expr.rhs, ir.AffineConstantExpr
    ):
        return parts(expr.lhs, factor * expr.rhs.value)
    return [(expr, factor)]


def made_by(value: ir.Value, buffer: Callable[[ir.Value], str]) -> str:
    """The buffer in which a stage leaves what a result begins with, "" for none."""
    owner = value.owner
    named = not isinstance(owner, ir.Block) and STAGE in owner.attributes
    return buffer(value) if named else ""


def start_of(value: ir.Value) -> str:
    """The number under a result, as text, "" if there are others."""
    owner = value.owner
    if isinstance(owner, ir.Block) or not is_fill(owner.opview):
        return ""
    return str(filled_with(owner.opview).attributes["value"])
