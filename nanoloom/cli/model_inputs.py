"""A model with its inputs, ready to run: how run, verify and bench begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.cli import session

if TYPE_CHECKING:
    from nanoloom.api.loaded import Loaded
    from nanoloom.api.program import Program
    from nanoloom.cli.arrays import Array
    from nanoloom.cli.emulation import Emulation
    from nanoloom.cli.progress import Watch
    from nanoloom.cli.request import Request
    from nanoloom.interface.interface import Interface

Size = int | tuple[int, int]


@dataclass(frozen=True)
class Inputs:
    """All arrays, checked.  random: the names of those that nobody gave."""

    arrays: Mapping[str, Array]
    random: Sequence[str]


def open_program(request: Request, watch: Watch) -> Program:
    """The model, read but not compiled."""
    from nanoloom.cli.schedules import load_schedules

    store = session.open_cache(request.cache, request.no_cache)
    machine = request.emulate
    with watch.waiting("start"):
        named = session.target_named(request.target, store)
        target = machine.target if machine else named
    options = session.compile_options(
        target,
        request.precision,
        load_schedules(request.schedule),
        checked=not request.unchecked,
        exact_conv=request.exact_conv,
        lowering=request.lowering,
    )
    return session.open_program(
        request.model,
        options,
        store,
        watch,
        threads=request.threads,
        dims=request.dims,
    )


def inputs_for(program: Program | Loaded | Emulation, request: Request) -> Inputs:
    """Arrays from files, random ones where there is no file.

    Raises InputError for names, files, arrays or dimensions that do not fit.
    """
    from nanoloom.cli.arrays import load_inputs

    given = load_inputs(request.inputs, program.inputs)
    return with_defaults(program.inputs, given, request.dims, request.seed)


def with_defaults(
    specs: Sequence[Interface],
    given: Mapping[str, Array],
    dims: Mapping[str, Size],
    seed: int,
) -> Inputs:
    """All inputs: those given, and random ones of the sizes that fit them.

    A dimension that has bounds only is taken from those given.
    """
    from nanoloom.frontend.inputs import InputSpec, random_inputs
    from nanoloom.interface.check_inputs import check_inputs

    shapes = {name: array.shape for name, array in given.items()}
    numbers = {name: n for name, n in dims.items() if isinstance(n, int)}
    bound = session.bound_shapes(specs, shapes, numbers)
    made = [InputSpec(x.name, bound[x.name], x.dtype) for x in specs]
    missing = [x for x in made if x.name not in given]
    arrays = check_inputs(specs, {**random_inputs(missing, seed), **given})
    return Inputs(arrays, [x.name for x in missing])


def random_note(random: Sequence[str], seed: int) -> str:
    """What to say of inputs that nobody gave, for stderr."""
    noun, verb = ("input", "is") if len(random) == 1 else ("inputs", "are")
    return f"nanoloom: {noun} {', '.join(random)} {verb} random (seed {seed})"
