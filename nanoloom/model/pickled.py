"""A program on its way to another process: which model, where it is, and its digest.

No code and no weights travel.  The other process finds both in the cache, or compiles
the model; for its own CPU where the program was for that of its machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from nanoloom.cache import Cache
from nanoloom.cache.digest import of
from nanoloom.errors import Error
from nanoloom.model.source import Source, source_of
from nanoloom.options import CompileOptions
from nanoloom.target.cached_host import host

HINT = "give both processes the same file, or compile it where it is to run"
Dims = Mapping[str, object]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Pickled:
    """What of a program is pickled.

    given: the model's file, or its bytes where it came from none.  own_cpu: whether the
    code is for whatever CPU it is used on.
    """

    given: str | bytes
    digest: str
    options: CompileOptions
    own_cpu: bool
    dims: Dims
    threads: int

    @classmethod
    def of(
        cls,
        source: Source,
        options: CompileOptions,
        cache: Cache,
        dims: Dims,
        threads: int,
    ) -> Pickled:
        """Raises Error for a computation."""
        own_cpu = options.target == host(cache)
        given = content(source.given)
        digest = of("bytes", given) if isinstance(given, bytes) else source.digest
        return cls(given, digest, options, own_cpu, dict(dims), threads)

    def restored(
        self, program: Callable[..., Made], cache: Cache | None = None
    ) -> Made:
        """The program in this process, with this process's cache if none is given.

        Raises Error for a file that is another by now.
        """
        cache = cache or Cache.of(None)
        source, options = source_of(self.given, cache), self.options
        if self.own_cpu:
            options = replace(options, target=host(cache))
        if source.digest != self.digest:
            reason = "is not the model that the program was made of"
            raise Error(reason, where=str(self.given)[:200], hint=HINT)
        return program(
            source, options, threads=self.threads, dims=self.dims, cache=cache
        )


def content(given: object) -> str | bytes:
    """The path of a model's file, absolute, or the bytes of a model without one."""
    if isinstance(given, str | Path):
        return str(Path(given).absolute())
    if isinstance(given, bytes):
        return given
    import onnx

    if isinstance(given, onnx.ModelProto):
        return given.SerializeToString()
    raise unpicklable()


def unpicklable() -> Error:
    hint = "save the program, and load the file in the other process"
    return Error("only programs of ONNX models can be pickled", hint=hint)
