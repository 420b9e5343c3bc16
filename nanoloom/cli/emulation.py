"""A model as an executable for another machine, run here by an emulator."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanoloom.errors import InputError

if TYPE_CHECKING:
    from nanoloom.api.program import Program
    from nanoloom.binary.assemble import Compiled
    from nanoloom.cli.arrays import Array
    from nanoloom.cli.progress import Watch
    from nanoloom.runtime.emulation import Machine

Emulate = Annotated[
    str | None,
    typer.Option(
        "--emulate",
        metavar="TARGET",
        help="Run for another CPU under qemu: riscv64+v:vlen=256, aarch64+sve:sve=512.",
    ),
]


def machine_named(word: str | None) -> Machine | None:
    """The machine behind `--emulate`; raises Error where there is no emulator of it."""
    if word is None:
        return None
    from nanoloom.cli.session import on_the_command_line
    from nanoloom.runtime.emulation import emulator, machine

    with on_the_command_line("--emulate"):
        found = machine(word)
    emulator(found.command[0])
    return found


class Emulation:
    """A program on an emulated machine, called as a Program is."""

    def __init__(self, program: Program, machine: Machine, watch: Watch) -> None:
        self.program, self.machine, self.watch = program, machine, watch
        self.inputs, self.outputs = program.inputs, program.outputs
        self.threads = program.threads

    def variant(
        self, arrays: Mapping[str, Array]
    ) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
        """The executable for these inputs' shapes, which goes with what is returned."""
        from nanoloom.cli.session import announce_c_library

        announce_c_library(self.program)
        folder = tempfile.TemporaryDirectory(prefix="nanoloom-")
        path = Path(folder.name, "model")
        is_open = written_open(self.program, arrays, path)
        decided = () if is_open else written(self.program, arrays, path)

        def call(given: Mapping[str, Array]) -> dict[str, Array]:
            with folder:
                try:
                    return self.run(path, given, decided)
                except InputError:  # of sizes that it is not for, or wrong for any:
                    if not is_open:  # then the variant says the same
                        raise
                return self.run(path, given, written(self.program, given, path))

        return call

    def run(
        self, path: Path, arrays: Mapping[str, Array], decided: Sequence[str]
    ) -> dict[str, Array]:
        """What the executable gives for these arrays.

        decided: inputs that it does not take, as their values are in its code.
        """
        from nanoloom.runtime.emulation import run_emulated

        self.watch.say(f"running under {self.machine.command[0]}")
        inputs = [arrays[x.name] for x in self.inputs if x.name not in decided]
        outputs = [x.name for x in self.outputs]
        return run_emulated(self.machine, path, inputs, outputs, self.threads)

    def __call__(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        return self.variant(arrays)(arrays)


def written_open(program: Program, arrays: Mapping[str, Array], path: Path) -> bool:
    """Write the executable for all sizes of what has no number; whether there is one
    that may take these."""
    from nanoloom.interface.bounds import require_within

    shapes = {name: array.shape for name, array in arrays.items()}
    sizes = program.open.numbers(shapes)
    if not sizes or not all(sizes.values()):
        return False
    require_within(program.bounds, program.inputs, shapes)
    compiled = program.open.to_link()
    if compiled is not None:
        write(program, compiled, path)
    return compiled is not None


def written(
    program: Program, arrays: Mapping[str, Array], path: Path
) -> tuple[str, ...]:
    """Write the executable for inputs of these shapes, and of these values where they
    decide shapes; the names of such inputs.

    Raises what compiling for a call raises.
    """
    from nanoloom.interface.bounds import require_within
    from nanoloom.model.binding import Binding, deciding

    source, options, cache = program.source, program.options, program.cache
    shapes = {name: array.shape for name, array in arrays.items()}
    require_within(program.bounds, program.inputs, shapes)
    compiled, names = deciding(
        arrays,
        source.value_inputs(cache, shapes),
        lambda values: Binding(
            source, options, cache, program.report, shapes, values
        ).compiled(),
    )
    write(program, compiled, path)
    return names


def write(program: Program, compiled: Compiled, path: Path) -> None:
    from nanoloom.binary import output_forms

    options = program.options
    identity = output_forms.Identity(
        path.name, program.source.digest, options.target, options.precision
    )
    output_forms.write("executable", [(identity, compiled)], path, program.cache)
