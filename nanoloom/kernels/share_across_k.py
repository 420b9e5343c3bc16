"""Kernels that differ in one extent alone, how much a product sums up, are one.

    y = max(x * scale + shift, 0) w     of 64, of 96, of 128, ... channels
      ->  one kernel, and the number of channels among its arguments

The layers of a densely connected network are such: two fifths of its compilation were
theirs.  A schedule is that of the usual length: the only word that names it is how far
rows come ahead, which is a round of any other.  Where only a run knows it the code is
as fast: DenseNet-121 is within 2 % of its time, in turns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from nanoloom.dynamic.dynamic_kernel import make_dynamic
from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.kernels.dynamic_program import with_sizes
from nanoloom.kernels.program import Kernel, Program
from nanoloom.memory.calls import Call, Place, Storage
from nanoloom.nest.contraction import elements, roles
from nanoloom.nest.extent import Extent
from nanoloom.weights.weight import weight_of

FEWEST = 3  # kernels that become one: so many samples prove what a size is
DEPTH = "depth"
NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class SharedKernel:
    """The kernel of some, and what each, by its name, is called with besides."""

    kernel: Kernel
    sizes: dict[str, tuple[int, ...]]


def share_across_k(program: Program, apart: Set[str] = frozenset()) -> Program:
    """The program with fewer kernels, if there are such.

    apart: names of those that stay what they are.
    """
    found: dict[str, SharedKernel] = {}
    kernels = [k for k in program.kernels.values() if k.name not in apart]
    groups = same_but_k(kernels)
    with mlir.context() if groups else nullcontext():
        for one in filter(None, map(joined, groups)):
            found |= dict.fromkeys(one.sizes, one)
    if not found:
        return program
    own = {name: one.kernel for name, one in found.items()}
    made = [own.get(name, kernel) for name, kernel in program.kernels.items()]
    parameters = list(program.parameters)
    places: dict[str, Place] = {}
    for name, one in found.items():
        places[name] = Place(Storage.PARAMETER, len(parameters))
        array = np.array(one.sizes[name], np.int64)
        parameters.append(weight_of(array, f"{name}.depth"))
    calls = [
        with_k(call, program.kernels[call.kernel], own[call.kernel], places)
        if call.kernel in own
        else call
        for call in program.calls
    ]
    return replace(
        program,
        kernels={kernel.name: kernel for kernel in made},
        calls=tuple(calls),
        parameters=tuple(parameters),
    )


def with_k(
    call: Call, before: Kernel, kernel: Kernel, places: dict[str, Place]
) -> Call:
    """A call of the kernel that became of the one before, with its sizes."""
    inputs = len(before.constants)
    given, results = call.arguments[:inputs], call.arguments[inputs:]
    shapes = (*before.shapes[:inputs], kernel.shapes[inputs], *before.shapes[inputs:])
    arguments = (*given, places[before.name], *results)
    return Call(kernel.name, arguments, call.layer, shapes, call.nodes)


def same_but_k(kernels: Sequence[Kernel]) -> list[list[Kernel]]:
    """Those whose texts are the same but for the depth; the deepest one first."""
    forms: dict[tuple[str, ...], list[list[Kernel]]] = {}
    for kernel in sorted(kernels, key=k_of, reverse=True):
        if not k_of(kernel):
            continue
        groups = forms.setdefault(tuple(NUMBER.split(kernel.text)), [])
        for group in groups:
            if differs_in_k(group[0], kernel):
                group.append(kernel)
                break
        else:
            groups.append([kernel])
    return [g for groups in forms.values() for g in groups if len(g) >= FEWEST]


def differs_in_k(one: Kernel, other: Kernel) -> bool:
    """Whether each number that the texts do not share is the depth in both, and no
    extent of a result: rows and columns of square products are as long as the sum."""
    pairs = zip(NUMBER.findall(one.text), NUMBER.findall(other.text), strict=True)
    depths = str(k_of(one)), str(k_of(other))
    same = one.root == other.root and one.constants == other.constants
    same = same and result_shapes(one) == result_shapes(other)
    return same and {pair for pair in pairs if pair[0] != pair[1]} == {depths}


def result_shapes(kernel: Kernel) -> list[tuple[Extent, ...]]:
    return [kernel.nest.buffer(name).shape for name in kernel.nest.results]


def k_of(kernel: Kernel) -> int:
    """How many f32 numbers a kernel's only product sums up along an axis; else 0.

    Panels of groups, as of bytes, are as deep as is known while compiling.
    """
    stage = kernel.nest.products[0] if len(kernel.nest.products) == 1 else None
    shape = None if stage is None else roles(stage)
    if stage is None or shape is None or len(shape.reduced) != 1:
        return 0
    if {*elements(stage, shape)} != {"f32"}:
        return 0
    return shape.extents[shape.reduced[0]]


def joined(group: Sequence[Kernel]) -> SharedKernel | None:
    """One kernel for some; None where they differ otherwise after all.

    An MLIR context must be current.
    """
    depths = [k_of(kernel) for kernel in group]
    samples = [{DEPTH: depth} for depth in depths]
    try:
        modules = [ir.Module.parse(kernel.text) for kernel in group]
        made = make_dynamic(modules, samples, most={DEPTH: max(depths)})
    except (NotDynamic, ir.MLIRError):  # an operation that is of known sizes only
        return None
    usual = group[len(group) // 2]  # its blocks of rows suit the others as well
    kernel = with_sizes(group[0], made, [each.nest for each in (usual, *group)])
    sizes = {
        each.name: tuple(size.of(sample) for size in made.sizes)
        for each, sample in zip(group, samples, strict=True)
    }
    return SharedKernel(kernel, sizes)
