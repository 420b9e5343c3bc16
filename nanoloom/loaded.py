"""A program in a shared library, as `Program.save` or `nanoloom compile` wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from nanoloom.errors import Error, public
from nanoloom.frontend.files import named_file
from nanoloom.frontend.inputs import check_inputs
from nanoloom.runtime.library import Library
from nanoloom.runtime.threads import thread_count
from nanoloom.source import Interface

Array = np.ndarray[Any, np.dtype[Any]]


@public
def load(path: str | Path, threads: int | None = None) -> Loaded:
    """A shared library that `Program.save` or `nanoloom compile -o` wrote."""
    return Loaded(named_file(path), thread_count(threads))


class Loaded:
    """A saved program: call it with a dict of arrays, get a dict of arrays."""

    def __init__(self, path: Path, threads: int) -> None:
        if not path.is_file():
            raise Error("no such file", where=str(path))
        self.library = Library(path)
        self.inputs = tuple(
            Interface(x.name, x.shape, x.element.dtype) for x in self.library.inputs
        )
        self.outputs = tuple(
            Interface(x.name, x.shape, x.element.dtype) for x in self.library.outputs
        )
        self.instance = self.library.create(threads)

    @public
    def __call__(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        arrays = check_inputs(self.inputs, inputs)
        made = self.library.new_outputs()
        self.instance.run([arrays[x.name] for x in self.inputs], made)
        names = (x.name for x in self.library.outputs)
        return dict(zip(names, made, strict=True))

    def __enter__(self) -> Loaded:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.instance.close()
