"""The kernel for all sizes of those for samples, with its sizes as one more input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blake3 import blake3

from nanoloom.dynamic.dynamic_kernel import DynamicKernel
from nanoloom.kernels.program import Kernel
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement


def with_sizes(first: Kernel, made: DynamicKernel, nests: Sequence[LoopNest]) -> Kernel:
    """The kernel that became of some, which reads its sizes from its last input.

    nests: theirs, first the one that a schedule is chosen for.
    """
    digest, place = blake3(made.text.encode()).hexdigest()[:8], len(first.constants)
    return replace(
        first,
        name=f"{first.name.rpartition('_')[0]}_{digest}",
        text=made.text,
        nest=with_samples(nests),
        constants=(*first.constants, True),
        shapes=(*first.shapes[:place], (len(made.sizes),), *first.shapes[place:]),
    )


def with_samples(nests: Sequence[LoopNest]) -> LoopNest:
    """The first of some nests, which knows the axes that are as long in all of them."""
    stages: list[Statement] = []
    for first, *others in zip(*[nest.stages for nest in nests], strict=True):
        rows = zip(first.axes, *[s.axes for s in others], strict=True)
        axes = [
            replace(axis, is_sample=any(x.extent != axis.extent for x in rest))
            for axis, *rest in rows
        ]
        stages.append(replace(first, axes=tuple(axes)))
    return replace(nests[0], stages=tuple(stages))


def list_of_results(kernel: Kernel) -> tuple[tuple[int, ...], ...]:
    """Shapes of a kernel's results, its last arguments."""
    return kernel.shapes[len(kernel.constants) :]
