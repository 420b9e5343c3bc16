"""What a loop's addresses have in common is one number, computed in front of it.

    for k                              o = row * 832 + panel * 64
      load a[row + 2, panel, k]   ->   for k
                                         load (a at o)[2, 0, k]

LLVM's strength reduction looks for the best way to split an address between registers,
among all sums of its terms: most of the time that the machine code of a product took.
Behind assembly without a word the number is one term to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nanoloom.ir.access import add, constant_of, index, multiply
from nanoloom.ir.mlir import arith, ir, llvm, memref, named

PREFETCH = "memref.prefetch"
# Where the buffer is among the operands; its indices follow.
ACCESSES = {
    "memref.load": 0,
    "memref.store": 1,
    PREFETCH: 0,
    "vector.transfer_read": 0,
    "vector.transfer_write": 1,
    "vector.load": 0,
    "vector.store": 1,
}
# A bound of the time that LLVM takes, no word: of fewer it finds the same addresses.
MANY_TERMS = 5
Terms = tuple[tuple[int, ir.Value], ...]  # a stride, and what it is multiplied by


@dataclass
class Access:
    """One access in a loop: what of its address changes there, and what does not."""

    op: ir.Operation
    at: int
    strides: list[int]
    terms: Terms = ()
    rest: list[list[ir.Value]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    @property
    def buffer(self) -> ir.Value:
        return self.op.operands[self.at]

    def split(self, loop: Loop) -> None:
        """Tell what changes in a loop from what does not.

        A place from which a number is taken stays one: what is left of it would be in
        front of the buffer, or below zero.
        """
        found: list[tuple[int, ir.Value]] = []
        for place, stride in enumerate(self.strides):
            whole = self.op.operands[self.at + 1 + place]
            values = [value for value in sum_of(whole) if constant_of(value) is None]
            number = sum(constant_of(value) or 0 for value in sum_of(whole))
            if number < 0:
                values, number = [whole], 0
            same = [value for value in values if not loop.makes(value)]
            found += [(stride, value) for value in same]
            self.rest.append([value for value in values if value not in same])
            self.numbers.append(number)
        self.terms = tuple(found)

    def move(self, view: ir.Value) -> None:
        """Let it go through a view that the terms are part of already."""
        with ir.InsertionPoint(self.op), self.op.location:
            for place, (number, changing) in enumerate(
                zip(self.numbers, self.rest, strict=True)
            ):
                made = index(number) if number or not changing else changing.pop(0)
                for value in changing:
                    made = add(made, value)
                self.op.operands[self.at + 1 + place] = made
        self.op.operands[self.at] = view


def share_addresses(module: ir.Module) -> None:
    """Split the addresses of every innermost loop (on `scf`, affine maps gone)."""
    for loop in named(module, "scf.for"):
        inner = Loop(loop)
        inside = {op.operation.name for op in inner.body.operations}
        if "scf.for" in inside or "vector.fma" not in inside:
            continue  # instructions of dot products have few addresses, or many vectors
        found = [x for x in accesses(inner.body) if not inner.makes(x.buffer)]
        for access in found:
            access.split(inner)
        if not takes_long(found):
            continue
        views: dict[tuple[ir.Value, Terms], ir.Value] = {}
        for access in found:
            if not access.terms:
                continue
            key = access.buffer, access.terms
            if key not in views:
                with ir.InsertionPoint(loop), loop.operation.location:
                    views[key] = view_at(access.buffer, access.terms)
            access.move(views[key])


def takes_long(found: Sequence[Access]) -> bool:
    """Whether LLVM would look at many sums: few are soon told apart, and as well."""
    terms = {value for access in found for _, value in access.terms}
    ahead = any(access.op.name == PREFETCH for access in found)
    return ahead or len(terms) >= MANY_TERMS


def accesses(block: ir.Block) -> Iterator[Access]:
    """What is read and written in a block, on buffers that lie as their shape says."""
    for op in block.operations:
        at = ACCESSES.get(op.operation.name)
        if at is not None and is_inside(op.operation):
            kind = ir.MemRefType(op.operation.operands[at].type)
            strides, offset = kind.get_strides_and_offset()
            if kind.has_static_shape and offset == 0 and min(strides, default=0) >= 0:
                yield Access(op.operation, at, list(strides))
        for region in op.operation.regions:
            for inner in region.blocks:
                yield from accesses(inner)


def is_inside(op: ir.Operation) -> bool:
    """Whether no lane of an access depends on how far its index is from an end."""
    words = op.attributes.get("in_bounds") if "in_bounds" in op.attributes else ()
    return all(ir.BoolAttr(word).value for word in words)


def sum_of(value: ir.Value) -> Iterator[ir.Value]:
    """The terms of an index."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.name == "arith.addi":
        for operand in owner.operands:
            yield from sum_of(operand)
    else:
        yield value


class Loop:
    """An innermost loop: what is made in it."""

    def __init__(self, op: ir.OpView) -> None:
        self.body = op.operation.regions[0].blocks[0]
        self._known: dict[ir.Value, bool] = {}

    def makes(self, value: ir.Value) -> bool:
        """Whether a value changes from one step to the next."""
        if value not in self._known:
            owner = value.owner
            block = owner if isinstance(owner, ir.Block) else owner.operation.block
            while block != self.body and block.owner.operation.name != "func.func":
                block = block.owner.operation.block
            self._known[value] = block == self.body
        return self._known[value]


def view_at(buffer: ir.Value, terms: Terms) -> ir.Value:
    """A buffer that begins where some terms say, behind what LLVM looks through."""
    total = index(0)
    for stride, value in terms:
        total = add(total, multiply(value, index(stride)))
    word = ir.IntegerType.get_signless(64)
    number = arith.index_cast(word, total)
    hidden = llvm.inline_asm(word, [number], "", "=r,0")
    offset = arith.index_cast(ir.IndexType.get(), hidden)
    kind = ir.MemRefType(buffer.type)
    strides, _ = kind.get_strides_and_offset()
    anywhere = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(anywhere, strides)
    made = ir.MemRefType.get(kind.shape, kind.element_type, layout, kind.memory_space)
    shape = list(kind.shape)
    return memref.reinterpret_cast(
        made, buffer, [offset], [], [], [anywhere], shape, list(strides)
    )
