"""What a verb works with: the cache, the machine, the model."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from nanoloom.cli.failures import say

if TYPE_CHECKING:
    from nanoloom.api.loaded import Loaded
    from nanoloom.api.program import Program
    from nanoloom.cache import Cache
    from nanoloom.cli.lowering_options import Lowering
    from nanoloom.cli.progress import Watch
    from nanoloom.interface.interface import Interface
    from nanoloom.options import Chosen, CompileOptions, Precision
    from nanoloom.target.facts import Target

ELF, PROGRAM = b"\x7fELF", 2


def open_cache(folder: Path | None, unused: bool) -> Cache:
    """The cache for `--cache DIR`, the user's without it; a private one if unused."""
    from nanoloom.cache import Cache, default_root

    if unused:
        return Cache.temporary()
    if folder is not None and folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"{folder} is a file", param_hint="--cache")
    return Cache(folder or default_root(), warn=lambda told: say(f"nanoloom: {told}"))


def target_named(name: str | None, cache: Cache) -> Target:
    """The known target of this name; this machine without one."""
    if name in (None, "host"):
        from nanoloom.target.cached_host import host

        return host(cache)
    from nanoloom.target import by_name

    with on_the_command_line("--target"):
        return by_name(name)


@contextmanager
def on_the_command_line(option: str) -> Generator[None]:
    """What is wrong with a word, whatever the model is, is wrong usage."""
    from nanoloom.errors import Error

    try:
        yield
    except Error as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def levels_named(name: str | None, cache: Cache) -> list[Target]:
    """The targets of one file, the least first: names with commas between."""
    from nanoloom.target.by_name import LEVELS, levels

    if name is not None and ("," in name or name.lower() in LEVELS):
        with on_the_command_line("--target"):
            return list(levels(name))
    return [target_named(name, cache)]


def compile_options(
    target: Target,
    precision: Precision = "f32",
    schedules: tuple[tuple[str, Chosen | str], ...] = (),
    *,
    checked: bool = True,
    exact_conv: bool = False,
    lowering: Lowering | None = None,
) -> CompileOptions:
    from nanoloom.options import CompileOptions

    made = CompileOptions(target, precision, schedules, checked, exact_conv)
    if lowering is None:
        return made
    strategy, layout, search = lowering.known(), lowering.layout, lowering.search
    return replace(made, strategy=strategy, layout=layout, search=search)


def open_program(
    model: Path,
    options: CompileOptions,
    cache: Cache,
    watch: Watch,
    *,
    threads: int | None,
    dims: Mapping[str, object],
) -> Program:
    """A model file, read as far as its inputs and outputs; nothing is compiled yet."""
    with watch.waiting("start"):
        from nanoloom.api.program import Program
        from nanoloom.model.source import source_of
        from nanoloom.runtime.threads import thread_count

    with watch.waiting("read"):
        source = source_of(model, cache)
        require_arrays(source.interface(cache)[0])
        source.texts.require_no_steps("the command line")
        return Program(
            source,
            options,
            threads=thread_count(threads),
            dims=dims,
            cache=cache,
            report=watch,
        )


def require_arrays(inputs: Sequence[Interface]) -> None:
    """Raise Error for an input that is a list of arrays, or may be left out."""
    from nanoloom.errors import Error

    for x in inputs:
        if x.holds:
            raise Error(
                f"is {x.holds}, which the command line cannot give",
                where=f"input {x.name}",
                hint="call the model from Python, or export it with tensors there",
            )


def announce_c_library(program: Program) -> None:
    """Say why the first executable for a machine takes longer than the next."""
    from nanoloom.binary.libc import is_built

    target = program.options.target
    if not is_built(target.triple, program.cache):
        say(f"nanoloom: building the C library for {target.arch}, once: about a minute")


def is_library(model: Path) -> bool:
    """Whether a file is compiled code; False where there is no such file."""
    return elf_machine(model) is not None


def elf_machine(model: Path) -> int | None:
    """The number of the CPU that compiled code is for; None for any other file."""
    if not model.is_file():  # a pipe would be waited for
        return None
    with model.open("rb") as file:
        head = file.read(20)
    return int.from_bytes(head[18:20], "little") if head.startswith(ELF) else None


def is_executable(model: Path) -> bool:
    """Whether compiled code is a static program, no library."""
    with model.open("rb") as file:
        return int.from_bytes(file.read(18)[16:], "little") == PROGRAM


def open_library(model: Path, threads: int | None) -> Loaded:
    """A library that `nanoloom compile` made; raises Error for any other."""
    from nanoloom.api.loaded import load
    from nanoloom.errors import Error
    from nanoloom.target.by_name import INSTRUCTION_SETS

    here, there = elf_machine(Path(sys.executable)), elf_machine(model)
    if None not in (here, there) and here != there:
        known = {isa.machine: isa.name for isa in INSTRUCTION_SETS.values()}
        names = [known.get(number or 0, "another CPU") for number in (there, here)]
        raise Error(
            "is compiled for {}, this machine is {}".format(*names),
            where=str(model),
            hint="compile the model for this one",
        )
    if is_executable(model):
        raise Error("is a program by itself", where=str(model), hint="run it: ./NAME")
    return load(model, threads)


def bound_shapes(
    specs: Sequence[Interface],
    given: Mapping[str, tuple[int, ...]],
    dims: Mapping[str, int],
) -> dict[str, tuple[int, ...]]:
    """The shape of every input: from its array, from `--dim`, from expressions of them.

    given: shapes of the arrays that there are, by input.
    Raises InputError for dimensions that are unknown, missing or contradictory.
    """
    from nanoloom.errors import InputError
    from nanoloom.frontend.symbol_places import own_names
    from nanoloom.interface.dimension_values import check_known
    from nanoloom.interface.expressions import evaluate

    numbers = dict(dims)
    texts = [d for x in specs for d in x.shape if isinstance(d, str)]
    check_known(texts, numbers)
    apart = own_names({x.name: x.shape for x in specs})
    for x in specs:
        for axis, (d, size) in enumerate(
            zip(x.shape, given.get(x.name, ()), strict=False)
        ):
            if isinstance(d, str) and numbers.setdefault(d, size) != size:
                own = quoted(apart.get((x.name, axis), d))
                raise InputError(
                    f"dimension {d} is {size} here and {numbers[d]} elsewhere",
                    where=f"input {x.name}",
                    hint="give inputs and --dim that agree, or a number for this place"
                    f" alone: --dim {own}={size}",
                )
    values = {text: evaluate(text, numbers) for text in texts}
    check_bound(values, numbers)
    return {
        x.name: given[x.name]
        if x.name in given
        else tuple(d if isinstance(d, int) else values[d] or 0 for d in x.shape)
        for x in specs
    }


def check_bound(values: Mapping[str, int | None], dims: Mapping[str, int]) -> None:
    """Raise InputError for dimensions (names or expressions) without a good number."""
    from nanoloom.errors import InputError
    from nanoloom.interface.expressions import names

    missing = dict.fromkeys(
        name
        for text, value in values.items()
        if value is None
        for name in sorted((names(text) or {text}) - dims.keys())
    )
    if missing:
        how = " ".join(f"--dim {quoted(name)}=N" for name in missing)
        reason = f"no number is given for dimension {', '.join(missing)}"
        raise InputError(reason, hint=f"add {how}")
    for text, value in values.items():
        if value is None or value < 0:
            raise InputError(f"dimension {text} would be {value}", hint="change --dim")


def quoted(name: str) -> str:
    """A name as a shell takes it."""
    import shlex

    return shlex.quote(name)
