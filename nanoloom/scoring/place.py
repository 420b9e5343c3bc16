"""Which model, by its digest, and where it is: all that travels to a worker.

No code and no weights travel.  A worker finds both in its machine's cache, or the first
one that asks compiles them (cache/one_maker.py); all map the same weights.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from nanoloom.api.loaded import Loaded, load
from nanoloom.api.program import Program
from nanoloom.cache import Cache, file_digest, key
from nanoloom.errors import Error, InputError, Unsupported
from nanoloom.interface.named_file import require_file
from nanoloom.model.pickled import HINT, Pickled
from nanoloom.model.source import source_of
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.cached_host import host
from nanoloom.target.facts import Target

Runs: TypeAlias = Program | Loaded
Dims = Mapping[str, int | tuple[int, int]]
LIBRARIES = (".so",)

_opening = threading.Lock()
_opened: dict[str, Runs] = {}  # of this process, whichever engine asks


@dataclass(frozen=True)
class Place:
    """A model that any process opens, once.

    model: what of it is pickled, or the path of a library.  digest: of its content.
    level: the CPU that code is for on every machine; None: each machine's own.
    cache: a folder that all machines see; None: that of each machine.
    """

    model: Pickled | str
    digest: str
    level: str | None
    cache: str | None

    @classmethod
    def of(
        cls, model: object, dims: Dims, level: str | None, cache: str | None
    ) -> Place:
        """Of a file of a model or a compiled library, a model, or a program.

        Raises Error for what is none, and for a library with other wishes.
        """
        if isinstance(model, Loaded):
            model = model.library.path
        if isinstance(model, str | Path) and Path(model).suffix in LIBRARIES:
            return cls._of_library(Path(model), dims, level, cache)
        store = Cache.of(cache)
        target = host(store) if level is None else by_name(level)
        if isinstance(model, Program):
            source, options = model.source, replace(model.options, target=target)
            if level is None:
                options = model.options
            dims = {**model.dims, **pairs(model), **dims}
        else:
            source, options = source_of(model, store), CompileOptions(target)
        made = Pickled.of(source, options, store, dims, 1)
        if level is not None:
            made = replace(made, own_cpu=False)
        return cls(made, made.digest, level, cache)

    @classmethod
    def _of_library(
        cls, path: Path, dims: Dims, level: str | None, cache: str | None
    ) -> Place:
        if dims or level is not None:
            reason = "a compiled library has its sizes and its CPU"
            raise InputError(reason, where=str(path), hint="give no dims and no level")
        require_file(path)
        return cls(str(path.absolute()), file_digest(path), None, cache)

    def with_dims(self, dims: Mapping[str, int]) -> Place:
        """The same model with numbers for some dimensions."""
        assert isinstance(self.model, Pickled)
        bound = replace(self.model, dims={**self.model.dims, **dims})
        return replace(self, model=bound)

    @property
    def key(self) -> str:
        """Of equal places: they are one program of a process."""
        said = self.model
        if isinstance(said, Pickled):
            own = said.options, said.own_cpu, sorted(said.dims.items())
            return key("scored", self.digest, own, self.level, self.cache)
        return key("scored", self.digest, said)

    def program(self) -> Runs:
        """The program in this process, on one thread; its code is made when it is
        called first.

        Threads may call it at the same time: so a worker uses several CPUs, and none
        waits for others in the middle of a run.  Raises Error where the model is not
        there or another one by now, Unsupported for a CPU below the level.
        """
        with _opening:
            if (found := _opened.get(self.key)) is None:
                found = _opened[self.key] = self._open()
            return found

    def prepare(self) -> None:
        """Compile the program now, if it is one for all sizes or has none."""
        program = self.program()
        if isinstance(program, Loaded):
            return
        if program.open.names:
            program.open.variant(program.threads)
        else:
            program.variant_of(program.static_shapes(), {})

    def _open(self) -> Runs:
        if isinstance(self.model, Pickled):
            store = Cache.of(self.cache)
            if self.level is not None:
                require_level(self.model.options.target, host(store))
            require_there(self.model)
            return self.model.restored(Program, store)
        require_there(self.model)
        path = Path(self.model)
        if file_digest(path) != self.digest:
            reason = "is not the library that it was"
            raise Error(reason, where=self.model, hint=HINT)
        return load(path, 1)


def pairs(program: Program) -> dict[str, int | tuple[int, int]]:
    """The bounds of a program's dimensions, as they are given."""
    return {name: (b.fewest, b.most) for name, b in program.bounds.items()}


def require_there(model: Pickled | str) -> None:
    """Raise Error for a file that this machine does not have."""
    path = model.given if isinstance(model, Pickled) else model
    if isinstance(path, str) and not Path(path).is_file():
        reason = "this machine has no such file"
        hint = "put the model where every machine of the cluster reads it"
        raise Error(reason, where=path, hint=hint)


def require_level(level: Target, machine: Target) -> None:
    """Raise Unsupported for a CPU that cannot run code of a level."""
    lacking = sorted(level.extensions - machine.extensions)
    if level.arch != machine.arch:
        lacking = [level.arch]
    if lacking:
        raise Unsupported(
            f"the level {level.name} needs {', '.join(lacking)}, which this machine's "
            "CPU has not",
            hint="name a lower level: x86-64-v2, x86-64-v3",
        )
