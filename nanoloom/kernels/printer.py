"""A program for people: its kernels as text, those of one layer, and its layouts."""

from __future__ import annotations

import fnmatch

from nanoloom.errors import Error, some_of
from nanoloom.fusion.layouts.layout import layout_named
from nanoloom.fusion.layouts.stage import plan_layouts
from nanoloom.ir.mlir import run_pipeline
from nanoloom.kernels.program import Kernel, Program
from nanoloom.kernels.stage import SIMPLIFY
from nanoloom.linalg.control.until import NO_END
from nanoloom.linalg.stage import LinalgModule
from nanoloom.memory.calls import Place, Repeated
from nanoloom.target.facts import Target


def kernels_of(program: Program, only: str) -> list[Kernel]:
    """The kernels of some layers, in the order of their first calls.

    only: a layer's name, a kernel's, or a pattern of either.  Raises Error, with the
    names that come near, if there is none.
    """
    named = {name for c in program.calls for name in (c.layer, c.kernel) if name}
    wanted = {only} & named or set(fnmatch.filter(named, only))
    calls = [c for c in program.calls if c.layer in wanted or c.kernel in wanted]
    if not calls:
        raise Error(f"there is no layer {only}", hint=some_of(named, only))
    return [program.kernels[name] for name in dict.fromkeys(c.kernel for c in calls)]


def describe_program(program: Program) -> str:
    """The kernels' text one after another, then the calls: for --emit kernels."""
    kernels = program.kernels.values()
    parts = [k.text.replace("@kernel(", f"@{k.name}(") for k in kernels]
    lines: list[str] = []
    for number, call in enumerate(program.calls):
        within = [x for x in program.repeats if number in x]
        for x in within:
            if x.first == number:
                also = ", beside those in front" if x.beside else ""
                lines.append(f"// {times(x)}{also}:")
        given = ", ".join(map(print_place, call.arguments))
        indent = "  " * len(within)
        lines.append(f"// {indent}{call.layer or '-'}: {call.kernel}({given})")
    return "\n// -----\n".join(parts) + "\n// calls in order:\n" + "\n".join(lines)


def times(repeat: Repeated) -> str:
    """How often a repeat runs, and what ends it before."""
    until = repeat.until
    if until is None:
        return f"{repeat.trips} times"
    words = [] if repeat.trips == NO_END else [f"at most {repeat.trips} times"]
    if until.limit:
        words.append(f"at most {print_place(until.limit)} times")
    if until.flag:
        words.append(f"as long as {print_place(until.flag)}")
    return ", ".join(words)


def print_place(place: Place) -> str:
    """A place, and in a repeat how many bytes it moves from trip to trip."""
    name = f"{place.storage.value}{place.index}"
    if place.state and place.state.moves:
        return f"{name} by turns {place.state.stride:+}"
    return f"{name} {place.stride:+}" if place.stride else name


def describe_module(lowered: LinalgModule) -> str:
    """A module, then the bodies of its repetitions: for --emit linalg."""
    parts = [str(lowered.module)]
    for name, repetition in lowered.repeats.items():
        most = "at most " if repetition.is_open else ""
        parts.append(f"// @{name}, {most}{repetition.trips} times:\n")
        parts.append(describe_module(repetition.body))
    return "".join(parts)


NO_CHOICE = "# no tensor between kernels has channels that could lie otherwise"


def describe_layouts(lowered: LinalgModule, target: Target, layout: str) -> str:
    """The layouts that `cut` gives a module's tensors, for people."""
    run_pipeline(lowered.module, SIMPLIFY)
    only = layout_named(layout)
    plan = plan_layouts(lowered, target, only)
    rows = [str(row) for row in plan.rows()]
    if only is not None and only not in plan.chosen.values():
        rows.insert(0, f"# no tensor between kernels can have {only}")
    return "\n".join(rows) or NO_CHOICE
