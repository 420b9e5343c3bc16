"""Kernels of one text and one schedule are one, whatever they were cut for.

    rows of 784 and of 196 pixels, of any number of images  ->  one kernel of any rows

A kernel that takes sizes has few numbers left in its text.  It keeps the schedule that
is chosen for the first sample: where those are not one, the kernels stay apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace

from nanoloom.kernels.program import Kernel, Program
from nanoloom.memory.calls import Call


def share_equal_kernels(program: Program, way: Callable[[Kernel], Hashable]) -> Program:
    """The program with fewer kernels, if there are such.

    way: the schedule of a kernel, as a value that compares; asked of those alone whose
    texts occur several times.
    """
    counts = Counter(map(said, program.kernels.values()))
    first: dict[Hashable, Kernel] = {}
    own: dict[str, Kernel] = {}
    for kernel in program.kernels.values():
        if counts[said(kernel)] > 1:
            found = first.setdefault((said(kernel), way(kernel)), kernel)
            if found is not kernel:
                own[kernel.name] = found
    if not own:
        return program
    kept = {n: kernel for n, kernel in program.kernels.items() if n not in own}
    calls = tuple(shared(call, program, own.get(call.kernel)) for call in program.calls)
    return replace(program, kernels=kept, calls=calls)


def said(kernel: Kernel) -> Hashable:
    """All that decides about a kernel's code but its schedule."""
    return kernel.text, kernel.root, kernel.constants, kernel.tables


def shared(call: Call, program: Program, kernel: Kernel | None) -> Call:
    """A call of the kernel in place of its own; the arguments keep their shapes."""
    if kernel is None:
        return call
    shapes = call.shapes or program.kernels[call.kernel].shapes
    return replace(call, kernel=kernel.name, shapes=shapes)
