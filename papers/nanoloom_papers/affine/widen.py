"""A loop's steps in the lanes of vectors: nanoloom's own vectorizer of affine loops.

    for k in 0..96 (s = first):       v = for k in 0..96 by 16 (v = 0):
      s + a[k]                 ->       v + a[k .. k + 16]
                                      first + all lanes of v

Loops further in stay as they are, of vectors; what does not depend on the loop stays a
single number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nanoloom.ir.mlir import ir, vector
from nanoloom.vector.combiner import GREATER, Combiner
from nanoloom_papers.affine.build import (
    body_of,
    bounds_of,
    copied,
    index_of_loop,
    loop_like,
    steps_of,
    yield_values,
    yielded,
)
from nanoloom_papers.affine.carrier import FOR, LOAD, STORE, initial_values
from nanoloom_papers.affine.detect import Found, reductions
from nanoloom_papers.affine.location import location_of
from nanoloom_papers.affine.parallel import is_parallel
from nanoloom_papers.affine.widenable import is_widenable, moves

VECTOR_LOAD, VECTOR_STORE = "affine.vector_load", "affine.vector_store"


def combiners_of(loop: ir.Operation) -> list[Combiner] | None:
    """How each value that a loop carries combines; None if one of them does not."""
    found = {each.carrier.position: each for each in reductions(loop)}
    made = [
        combiner(found[place]) if place in found else None
        for place in range(len(initial_values(loop)))
    ]
    return None if None in made else [each for each in made if each is not None]


def combiner(found: Found) -> Combiner | None:
    """How a reduction's lanes combine, NaNs included."""
    element = found.carrier.start.type
    compared = "arith.cmpf" in found.chain.steps[0].operations
    if found.pair is None and compared and found.kind == "arith.maxnumf":
        return Combiner(GREATER, element)
    if found.obstacle:
        return None
    return Combiner(found.kind, element)


def may_widen(loop: ir.Operation) -> bool:
    """Whether a loop's steps can be lanes."""
    if bounds_of(loop) is None or not is_widenable(loop):
        return False
    if not initial_values(loop):
        return is_parallel(loop)
    return combiners_of(loop) is not None and writes_nothing(loop)


def writes_nothing(loop: ir.Operation) -> bool:
    return all(op.name != STORE for op in steps_of(body_of(loop)))


def widen(loop: ir.Operation, lanes: int) -> None:
    """A loop whose steps fill vectors, as lanes of those.  `may_widen` holds."""
    bounds = bounds_of(loop)
    combiners = combiners_of(loop) if initial_values(loop) else []
    assert bounds is not None and combiners is not None
    with ir.InsertionPoint(loop), loop.location:
        first = [splat(each.neutral(), lanes) for each in combiners]
        made, block = loop_like(loop, first, bounds, lanes)
        emit_steps(loop, block, loop, Lanes(lanes, counter=index_of_loop(loop)))
        totals = [
            each.apply(begin, each.across(result))
            for each, begin, result in zip(
                combiners, initial_values(loop), made.results, strict=True
            )
        ]
    for old, new in zip(loop.results, totals, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


@dataclass
class Lanes:
    """Values of a loop on their way to vectors.

    single: of the old body to the new one, the same in all lanes; wide: as vectors.
    """

    count: int
    single: dict[ir.Value, ir.Value] = field(
        default_factory=dict["ir.Value", "ir.Value"]
    )
    wide: dict[ir.Value, ir.Value] = field(default_factory=dict["ir.Value", "ir.Value"])
    counter: ir.Value | None = None

    def of(self, value: ir.Value) -> ir.Value:
        """A value in all lanes."""
        if value == self.counter:
            kind = ir.VectorType.get([self.count], value.type)
            steps = ir.Operation.create("vector.step", [kind]).results[0]
            begin = splat(self.single[value], self.count)
            return ir.Operation.create("arith.addi", [kind], [begin, steps]).results[0]
        if value in self.wide:
            return self.wide[value]
        return splat(self.single.get(value, value), self.count)

    def depends(self, op: ir.Operation) -> bool:
        """Whether an operation has another result in each lane."""
        return any(value in self.wide or value == self.counter for value in op.operands)


def emit_steps(
    op: ir.Operation, block: ir.Block, loop: ir.Operation, lanes: Lanes
) -> None:
    """What a loop does, the widened one or one in it, in the body of its new form."""
    counter, *carried = block.arguments
    lanes.single[index_of_loop(op)] = counter
    old = body_of(op)
    lanes.wide |= dict(zip(list(old.arguments)[1:], carried, strict=True))
    with ir.InsertionPoint(block):
        for each in steps_of(old):
            emit(each, loop, lanes)
        values = [lanes.of(value) for value in yielded(old)]
    yield_values(block, values)


def emit(op: ir.Operation, loop: ir.Operation, lanes: Lanes) -> None:
    """One operation, at the current insertion point."""
    if op.name == FOR:
        emit_loop(op, loop, lanes)
    elif op.name in (LOAD, STORE) and moves(location_of(op.opview), loop):
        access(op, lanes)
    elif op.name == STORE or not lanes.depends(op) or op.name == "affine.apply":
        copied(op, lanes.single)
    else:
        operands = [lanes.of(value) for value in op.operands]
        kinds = [ir.VectorType.get([lanes.count], r.type) for r in op.results]
        words = {name: op.attributes[name] for name in op.attributes}
        made = ir.Operation.create(op.name, kinds, operands, words)
        lanes.wide |= dict(zip(op.results, made.results, strict=True))


def access(op: ir.Operation, lanes: Lanes) -> None:
    """A load or store of as many elements, one behind the other."""
    words = {"map": op.attributes["map"]}
    places = [lanes.single.get(value, value) for value in op.operands]
    if op.name == STORE:
        places[0] = lanes.of(op.operands[0])
        ir.Operation.create(VECTOR_STORE, [], places, words)
        return
    kind = ir.VectorType.get([lanes.count], op.results[0].type)
    made = ir.Operation.create(VECTOR_LOAD, [kind], places, words)
    lanes.wide[op.results[0]] = made.results[0]


def emit_loop(op: ir.Operation, loop: ir.Operation, lanes: Lanes) -> None:
    """A loop further in: what it carries is in lanes."""
    first = [lanes.of(value) for value in initial_values(op)]
    made, block = loop_like(op, first)
    emit_steps(op, block, loop, lanes)
    lanes.wide |= dict(zip(op.results, made.results, strict=True))


def splat(value: ir.Value, count: int) -> ir.Value:
    """A number in all lanes."""
    return vector.broadcast(ir.VectorType.get([count], value.type), value)
