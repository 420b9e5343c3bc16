"""Values that are parts of a larger one: their kernels write them in place.

    y = insert_slice(x, into)   ->   the kernel of x writes its part of y

So padding and concatenation cost no copy of their own.  What lies around the parts of a
padded tensor is a small kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nanoloom.kernels.numbers import Arguments
from nanoloom.kernels.structure import (
    Op,
    base,
    input_count,
    is_fill,
    is_generic,
    yielded,
)
from nanoloom.linalg.words.pointwise import itself, pointwise
from nanoloom.mlir import arith, func, ir, named, tensor

INSERT = "tensor.insert_slice"
MOST_COPIES = 2  # of a tensor's parts; a kernel each, where others write in place


@dataclass(frozen=True)
class Part:
    """A block of a larger tensor: where it begins, and how far it goes."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(op: Op) -> Part:
        words = op.operation.attributes
        begin, count = (
            tuple(int(n) for n in words[f"static_{name}"])  # type: ignore[attr-defined]
            for name in ("offsets", "sizes")
        )
        return Part(begin, count)

    def meets(self, other: Part) -> bool:
        """Whether two blocks of one tensor have elements in common."""
        ranges = zip(self.offsets, self.sizes, other.offsets, other.sizes, strict=True)
        return all(a < c + d and c < a + b for a, b, c, d in ranges)

    def around(self, shape: tuple[int, ...]) -> Iterator[Part]:
        """Blocks that cover the rest of a tensor: two for each dimension, at most."""
        low, high = [0] * len(shape), list(shape)
        for d, (begin, count) in enumerate(zip(self.offsets, self.sizes, strict=True)):
            for start, end in ((low[d], begin), (begin + count, high[d])):
                if start < end:
                    offsets = [*low[:d], start, *low[d + 1 :]]
                    ends = [*high[:d], end, *high[d + 1 :]]
                    sizes = [e - o for e, o in zip(ends, offsets, strict=True)]
                    yield Part(tuple(offsets), tuple(sizes))
            low[d], high[d] = begin, begin + count

    def read(self, whole: ir.Value, kind: ir.Type) -> ir.Value:
        """The block as a tensor of this type; dimensions of 1 may be missing in it."""
        return tensor.ExtractSliceOp(
            kind, whole, [], [], [], list(self.offsets), list(self.sizes), self.ones
        ).result

    def write(self, value: ir.Value, whole: ir.Value) -> ir.Value:
        """The larger tensor with this block."""
        return tensor.InsertSliceOp(
            value, whole, [], [], [], list(self.offsets), list(self.sizes), self.ones
        ).result

    @property
    def ones(self) -> list[int]:
        return [1] * len(self.sizes)


def is_part(op: Op) -> bool:
    """Whether an insertion only says where its source lies."""
    if op.operation.name != INSERT or len(list(op.operation.operands)) != 2:
        return False
    if any(step != 1 for step in op.operation.attributes["static_strides"]):  # type: ignore[attr-defined]
        return False
    chain = chain_of(op)
    if chain is None or sum(not is_made_for(o) for o in chain) > MOST_COPIES:
        return False
    parts = [Part.of(o) for o in chain]
    return not any(a.meets(b) for i, a in enumerate(parts) for b in parts[:i])


def chain_of(op: Op) -> list[Op] | None:
    """All insertions into one new tensor; None if it is not new, or read in between."""
    chain = [op]
    while True:
        owner = chain[0].operation.operands[1].owner
        if isinstance(owner, ir.Block):
            return None
        if owner.name != INSERT:
            break
        if len(list(owner.results[0].uses)) != 1:
            return None
        chain.insert(0, owner.opview)
    if origin_of(chain) is None:
        return None
    while (after := only_user(chain[-1].operation.results[0])) is not None:
        inserts = after.operation.name == INSERT
        if not inserts or after.operation.operands[1] != chain[-1].operation.results[0]:
            break
        chain.append(after)
    return chain


def origin_of(chain: list[Op]) -> ir.Operation | None:
    """The fill or the empty tensor that a chain of insertions begins with."""
    owner = base(chain[0].operation.operands[1]).owner
    if isinstance(owner, ir.Block):
        return None
    new = owner.name == "tensor.empty" or is_fill(owner.opview)
    return owner if new else None


def only_user(value: ir.Value) -> Op | None:
    uses = list(value.uses)
    return uses[0].owner.opview if len(uses) == 1 else None


def home(value: ir.Value) -> ir.Value:
    """The tensor that a value is a part of, itself if of none."""
    while (user := only_user(value)) is not None and is_part(user):
        value = user.operation.results[0]
    return value


def part_of(value: ir.Value) -> Part | None:
    """Where a value that a kernel makes lies in a larger one, None if in none."""
    user = only_user(value)
    if user is None or not is_part(user) or user.operation.operands[0] != value:
        return None
    return Part.of(user)


def copy_sources(module: ir.Module) -> None:
    """Give each part a source that a kernel makes for it alone: a copy if need be."""
    for op in named(module, INSERT):
        if op.operation.parent.name == "func.func" and is_part(op):  # type: ignore[union-attr]
            source = op.operation.operands[0]
            if not is_made_for(op):
                kind = ir.RankedTensorType(source.type)
                with ir.InsertionPoint(op), op.operation.location:
                    made = tensor.empty(kind.shape, kind.element_type)
                    op.operation.operands[0] = pointwise([source], made, itself)


def is_made_for(op: Op) -> bool:
    """Whether an insertion's source is computed by a generic, and read only here."""
    source = op.operation.operands[0]
    owner = source.owner
    if isinstance(owner, ir.Block) or only_user(source) is None:
        return False
    generic = is_generic(owner.opview) and len(list(owner.results)) == 1
    return generic and input_count(owner.opview) > 0


def fill_around(
    whole: ir.Value,
) -> tuple[ir.RankedTensorType, list[Part], ir.Attribute] | None:
    """What parts leave of their tensor, as `filling` takes it; None if no number.

    whole: with all of its parts, as `home` gives it.
    """
    chain = chain_of(whole.owner.opview)  # type: ignore[union-attr]
    assert chain is not None, "it has parts"
    fill = origin_of(chain)
    if fill is None or not is_fill(fill.opview):
        return None
    kind = ir.RankedTensorType(whole.type)
    shape = tuple(kind.shape)
    blocks = [Part((0,) * len(shape), shape)]
    if len(chain) == 1:
        blocks = list(Part.of(chain[0]).around(shape))
    number = yielded(fill.opview)[0].owner
    assert not isinstance(number, ir.Block)
    return (kind, blocks, number.attributes["value"]) if blocks else None


def filling(
    kind: ir.RankedTensorType,
    blocks: list[Part],
    number: ir.Attribute,
    numbers: Arguments,
) -> ir.Module:
    """@kernel(result) -> result with these blocks of it filled.

    numbers: none of it is an argument.
    """
    assert not numbers.types
    module = ir.Module.create(ir.Location.unknown())
    with ir.InsertionPoint(module.body), ir.Location.unknown():
        kernel = func.FuncOp("kernel", ir.FunctionType.get([kind], [kind]))
        entry = kernel.add_entry_block()
    words = {"bufferization.writable": ir.BoolAttr.get(True)}
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(words)])
    with ir.InsertionPoint(entry), ir.Location.unknown():
        whole: ir.Value = entry.arguments[0]
        for block in blocks:
            made = ir.RankedTensorType.get(list(block.sizes), kind.element_type)
            target = block.read(whole, made)
            filled = pointwise(
                [], target, lambda: arith.constant(kind.element_type, number)
            )
            whole = block.write(filled, whole)
        func.ReturnOp([whole])
    return module
