"""The body of a generic computed on vectors instead of scalars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nanoloom.ir.access import index
from nanoloom.ir.body_facts import is_call
from nanoloom.ir.mlir import arith, ir, llvm, memref, vector
from nanoloom.nest.extent import Lanes
from nanoloom.nest.reduction import WIDENING
from nanoloom.vector.body_steps import BodyStep
from nanoloom.vector.lane_values import Lane, LaneValue, Uniform, Vector
from nanoloom.vector.scalable_gather import gathered, linear
from nanoloom.vector.table_lookups import byte_of, is_table, lookup
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.widths import filler, is_scalable, vector_type

LANEWISE = ("arith.", "math.")
FLOATS = {"arith.mulf", "arith.addf", "linalg.yield"}
INTEGERS = {"arith.muli", "arith.addi", *WIDENING}
TRANSPARENT = ("arith.index_cast", "arith.index_castui")


def is_vectorizable(block: ir.Block, dim: int) -> bool:
    """Whether every operation of a body has a vector form along `dim`."""
    varying: set[ir.Value] = set(block.arguments)
    for op in block.operations:
        operation = op.operation
        name = operation.name
        if operation.regions and any(True for _ in operation.regions):
            return False
        if name == "linalg.index":
            if operation.attributes["dim"].value == dim:  # type: ignore[attr-defined]
                varying.add(operation.results[0])
            continue
        if name in ("linalg.yield", "arith.constant", "memref.load"):
            varying.update(operation.results)
            continue
        if not name.startswith(LANEWISE):
            return False
        if is_call(op):
            return False
        varying.update(operation.results)
    return True


@dataclass
class VectorBody:
    """Emits a body once, with `lanes` elements of dimension `dim` at a time.

    mask: which lanes count (None: all); loads through it leave 1 in the others.
    once: what other points of the same block have made.  sums: arguments of the body
    that products are added to in one rounding.
    """

    lanes: Lanes
    dim: int
    ivs: list[ir.Value]
    mask: ir.Value | None = None
    once: ValueCache = field(default_factory=ValueCache)
    sums: tuple[ir.Value, ...] = ()
    values: dict[ir.Value, LaneValue] = field(default_factory=dict)

    def kind(self, element: ir.Type) -> ir.VectorType:
        return vector_type(self.lanes, element)

    def vector(self, value: LaneValue) -> ir.Value:
        match value:
            case Vector(v):
                return v
            case Uniform(v):
                wide = self.once.wide
                if (v, self.lanes) not in wide:
                    wide[v, self.lanes] = vector.broadcast(self.kind(v.type), v)
                return wide[v, self.lanes]
            case Lane(start):
                steps = vector.step(self.kind(ir.IndexType.get()))
                if not isinstance(start.type, ir.IndexType):
                    steps = arith.index_cast(self.kind(start.type), steps)
                base = vector.broadcast(self.kind(start.type), start)
                return arith.addi(base, steps)

    def emit(self, block: ir.Block) -> list[LaneValue]:
        """Emit the body's operations; gives what it yields."""
        for step in self.once.steps(block, self.sums):
            given = tuple(self.lookup(v) for v in step.operands)
            if step.is_product:
                self.widened(given)
                continue
            if step.name == "linalg.yield":
                return list(given)
            made = self.made(step, given)
            self.values.update(zip(step.results, made, strict=True))
        raise AssertionError("a body without a yield")

    def made(self, step: BodyStep, given: tuple[LaneValue, ...]) -> list[LaneValue]:
        """What an operation of the body becomes, once for points that give the same.

        No sum has the same twice; with products it is computed in one rounding.
        """
        if step.is_fused:
            return [Vector(vector.fma(*(self.vector(x) for x in given)))]
        key = step, given, self.mask
        if step.name == "linalg.index" or key not in self.once.made:
            self.once.made[key] = self.operation(step.operation)
        return self.once.made[key]

    def widened(self, factors: Sequence[LaneValue]) -> None:
        """The vectors that a product is of, where it would be computed by itself."""
        if not all(isinstance(x, Uniform) for x in factors):
            for x in factors:
                self.vector(x)

    def operation(self, op: ir.Operation) -> list[LaneValue]:
        if op.name == "arith.constant":
            return [Uniform(op.clone().results[0])]
        if op.name == "linalg.index":
            dim = op.attributes["dim"].value  # type: ignore[attr-defined]
            iv = self.ivs[dim]
            return [Lane(iv) if dim == self.dim else Uniform(iv)]
        operands = [self.lookup(v) for v in op.operands]
        if op.name == "memref.load":
            return [self.load(operands)]
        if all(isinstance(x, Uniform) for x in operands):
            return self.uniform(op, [x.value for x in operands])
        if op.name in TRANSPARENT and isinstance(operands[0], Lane):
            cast = self.cloned(op, [operands[0].start], False)[0]
            assert isinstance(cast, Uniform)
            return [Lane(cast.value)]
        if op.name == "arith.addi" and {type(x) for x in operands} == {Lane, Uniform}:
            starts = [x.start if isinstance(x, Lane) else x.value for x in operands]  # type: ignore[union-attr]
            return [Lane(arith.addi(*starts))]
        wide = self.wide(op, operands)
        kinds = [str(value.type) for value in (*op.operands, *op.results)]
        narrows = op.name == "arith.trunci" and kinds == ["i64", "i32"]
        if narrows and not self.lanes.scalable:
            return [Vector(low_halves(wide[0]))]
        return self.cloned(op, wide, True)

    def uniform(self, op: ir.Operation, given: list[ir.Value]) -> list[LaneValue]:
        """The same in all lanes; nothing where it was extended as it was loaded.

        What was extended in part there is a factor of a product of wider sums.
        """
        wanted, is_widening = op.results[0].type, op.name in WIDENING
        if is_widening and given[0].type == wanted:
            return [Uniform(given[0])]
        if is_widening and given[0].type != op.operands[0].type:
            wide = self.vector(Uniform(given[0]))
            return [Vector(arith.extsi(self.kind(wanted), wide))]
        return self.cloned(op, given, False)

    def wide(self, op: ir.Operation, operands: Sequence[LaneValue]) -> list[ir.Value]:
        """Operands as vectors, but for a choice that is the same in every lane."""
        match operands:
            case (Uniform(choice), yes, no) if op.name == "arith.select":
                return [choice, self.vector(yes), self.vector(no)]
            case _:
                return [self.vector(x) for x in operands]

    def lookup(self, value: ir.Value) -> LaneValue:
        """A value of the body, or one from around the generic."""
        return self.values.get(value, Uniform(value))

    def cloned(
        self, op: ir.Operation, operands: Sequence[ir.Value], wide: bool
    ) -> list[LaneValue]:
        """The same operation on scalars or on vectors."""
        kinds = [self.kind(r.type) if wide else r.type for r in op.results]
        made = ir.Operation.create(
            op.name, kinds, operands, {k: op.attributes[k] for k in keys(op)}
        )
        wrap = Vector if wide else Uniform
        return [wrap(r) for r in made.results]

    def gathered(self, source: ir.Value, places: Sequence[LaneValue]) -> ir.Value:
        """What lanes read at places of their own, some of the dimensions the same."""
        at = [x.value if isinstance(x, Uniform) else index(0) for x in places]
        own = [x.value if isinstance(x, Vector) else None for x in places]
        far = linear(source, own, self.kind(ir.IndexType.get()))
        kind = self.kind(ir.MemRefType(source.type).element_type)
        return gathered(kind, source, at, far, self.mask)

    def load(self, operands: Sequence[LaneValue]) -> LaneValue:
        """memref.load in a body: one scalar, one vector, or a load a lane."""
        source = operands[0]
        assert isinstance(source, Uniform)
        places = list(operands[1:])
        if all(isinstance(x, Uniform) for x in places):
            return Uniform(memref.load(source.value, [x.value for x in places]))
        element = ir.MemRefType(source.value.type).element_type
        leading = all(isinstance(x, Uniform) for x in places[:-1])
        if leading and isinstance(places[-1], Lane):
            at = [x.value for x in places[:-1]] + [places[-1].start]  # type: ignore[union-attr]
            return Vector(read(self.kind(element), source.value, at, self.mask))
        scalable = self.lanes.scalable
        assert scalable or self.mask is None, "tails of gathers are scalar"
        wide = [x if isinstance(x, Uniform) else Vector(self.vector(x)) for x in places]
        bytes_ = byte_of(wide[0].value) if is_table(source.value) else None
        if bytes_ is not None and scalable:
            far = arith.extui(self.kind(ir.IntegerType.get_signless(32)), bytes_)
            at = [index(0)]
            found = gathered(self.kind(element), source.value, at, far, self.mask)
            return Vector(found)
        if bytes_ is not None:
            return Vector(lookup(source.value, bytes_))
        if self.lanes.scalable:
            return Vector(self.gathered(source.value, wide))
        loaded: list[ir.Value] = []
        for lane in range(self.lanes.count):
            at = [
                x.value
                if isinstance(x, Uniform)
                else vector.extract(x.value, [], [lane])
                for x in wide
            ]
            loaded.append(memref.load(source.value, at))
        return Vector(vector.from_elements(self.kind(element), loaded))


def low_halves(value: ir.Value) -> ir.Value:
    """i64 to i32: every second i32 of the two registers that hold so many i64.

    One shuffle in AVX-512, where a conversion is two of each register and a third.
    """
    lanes = ir.VectorType(value.type).shape[0]
    i32 = ir.IntegerType.get_signless(32)
    halves = vector.bitcast(ir.VectorType.get([2 * lanes], i32), value)
    return vector.shuffle(halves, halves, range(0, 2 * lanes, 2))


def keys(op: ir.Operation) -> list[str]:
    return [a.name if hasattr(a, "name") else a for a in op.attributes]


def gathers(block: ir.Block, dim: int) -> bool:
    """Whether lanes along a dimension load from places of their own choice: others are
    one place, or follow each other as the lanes do."""
    lanes, vectors = set[ir.Value](), set[ir.Value](block.arguments)
    for each in block.operations:
        op = each.operation
        given = list(op.operands)
        if op.name == "linalg.index":
            along = op.attributes["dim"].value == dim  # type: ignore[attr-defined] - an IntegerAttr
            lanes.update(op.results if along else ())
        elif op.name == "memref.load":
            *leading, last = given[1:] or [None]
            if vectors.intersection(given) or lanes.intersection(leading):
                return True
            vectors.update(op.results if last in lanes else ())
        elif vectors.intersection(given):
            vectors.update(op.results)
        elif moving := [value for value in given if value in lanes]:
            shifted = op.name == "arith.addi" and len(moving) == 1
            stays = shifted or op.name in TRANSPARENT
            (lanes if stays else vectors).update(op.results)
    return False


def takes_any(block: ir.Block) -> bool:
    """Whether a body can be given anything at all in masked lanes: sums of products."""
    return {op.operation.name for op in block.operations} <= FLOATS


def sums_any(block: ir.Block) -> bool:
    """The same, of sums of integers, and of what is widened, too."""
    return {op.operation.name for op in block.operations} <= {*FLOATS, *INTEGERS}


def read(
    kind: ir.VectorType,
    buffer: ir.Value,
    at: list[ir.Value],
    mask: ir.Value | None,
    body: ir.Block | None = None,
) -> ir.Value:
    """Contiguous elements as a vector.

    body: what reads them.  Where it takes anything in masked lanes, no register holds
    what they are.
    """
    if mask is None:
        return vector.load(kind, buffer, at)
    any_number = sums_any if is_scalable(kind) else takes_any
    if body is not None and any_number(body):
        rest = llvm.mlir_poison(kind)
    else:
        rest = vector.broadcast(kind, filler(kind.element_type))
    return vector.maskedload(kind, buffer, at, mask, rest)
