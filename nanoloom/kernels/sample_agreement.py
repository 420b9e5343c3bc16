"""What programs that were cut for samples of the sizes must have in common."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nanoloom.dynamic.dynamic_refusal import NotDynamic, Others
from nanoloom.dynamic.polynomial import Dims, Size, beginning
from nanoloom.kernels.program import Program, Word
from nanoloom.memory.calls import Call, Storage
from nanoloom.weights.weight import Weight

FEW = 16  # elements of a constant that are sizes


def require_same(programs: Sequence[Program]) -> None:
    """Raise Differs where calls or checks depend on the sizes.

    Other samples may not differ: which of two sizes is larger is alike in some.
    """
    if len({(len(p.calls), len(p.repeats)) for p in programs}) > 1:
        calls = zip(*[p.calls for p in programs], strict=False)
        rows = [(row[0], {call.layer for call in row}) for row in calls]
        other = [call for call, layers in rows if len(layers) > 1]
        where = f"{node_of(other[0])}: " if other else ""
        reason = f"{where}other sizes are computed in more steps, or fewer"
        raise NotDynamic(reason, others=Others.ANY)
    if len({tuple(named(word) for word in p.checks) for p in programs}) > 1:
        rows = zip(*[p.checks for p in programs], strict=False)
        other = [row[0] for row in rows if len({named(word) for word in row}) > 1]
        where = f"{other[0].limits.where}: " if other else ""
        raise NotDynamic(f"{where}other sizes look at other indices")
    if len({len(p.parameters) for p in programs}) > 1:
        rows = zip(*[p.calls for p in programs], strict=True)
        read = [(row[0], {len(parameters_of(call)) for call in row}) for row in rows]
        other = [call for call, counts in read if len(counts) > 1]
        where = f"{node_of(other[0])}: " if other else ""
        raise NotDynamic(f"{where}other sizes need more constants, or fewer")


def parameters_of(call: Call) -> list[int]:
    """The constants that a call reads."""
    return [x.index for x in call.arguments if x.storage is Storage.PARAMETER]


def node_of(call: Call) -> str:
    """The node that a call computes, in the words of a message."""
    return f"node {call.layer}" if call.layer else f"kernel {call.kernel}"


def readers_of(program: Program, parameter: int) -> str:
    """The first node that reads a constant, in front of a reason."""
    for call in program.calls:
        for place in call.arguments:
            if (place.storage, place.index) == (Storage.PARAMETER, parameter):
                return f"{node_of(call)}: "
    return ""


def named(word: Word) -> tuple[object, ...]:
    """What of a check no size decides."""
    limits = word.limits
    return limits.where, limits.what, limits.low < 0, word.number


def sized_parameters(
    programs: Sequence[Program], samples: Sequence[Dims]
) -> dict[int, tuple[Size, ...]]:
    """Which constants are sizes: integers that are computed with when a program runs.

    Raises Differs for others that are not the same for all samples.
    """
    made: dict[int, tuple[Size, ...]] = {}
    for i, weights in enumerate(zip(*[p.parameters for p in programs], strict=True)):
        if all(are_equal(weights[0], other) for other in weights[1:]):
            continue
        elements = elements_of(weights, samples)
        if elements is None:
            name = weights[0].source.name or "a constant"
            where = readers_of(programs[0], i)
            raise NotDynamic(
                f"{where}{name}, which is computed before, depends on sizes"
            )
        made[i] = elements
    return made


def elements_of(
    weights: Sequence[Weight], samples: Sequence[Dims]
) -> tuple[Size, ...] | None:
    """The sizes in constants of int64; None where they are none."""
    shapes = {weight.shape for weight in weights}
    few = len(shapes) == 1 and prod(weights[0].shape) <= FEW
    if not few or any(weight.dtype != np.int64 for weight in weights):
        return None
    rows = [[int(n) for n in weight.array().flat] for weight in weights]
    sizes = [beginning(numbers, samples) for numbers in zip(*rows, strict=True)]
    known = tuple(size for size in sizes if size is not None)
    return known if len(known) == len(sizes) else None


def are_equal(one: Weight, other: Weight) -> bool:
    if one == other:
        return True
    kinds = [(weight.shape, weight.dtype) for weight in (one, other)]
    return kinds[0] == kinds[1] and np.array_equal(bytes_of(one), bytes_of(other))


def bytes_of(weight: Weight) -> np.ndarray:
    return np.frombuffer(weight.array().tobytes(), np.uint8)
