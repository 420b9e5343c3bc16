"""A model before it is bound to shapes: where it comes from and what it declares."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from nanoloom.cache import Cache, file_operations, key
from nanoloom.cache.digest import of
from nanoloom.errors import InputError, Unsupported
from nanoloom.fork_lock import wait_for_compiler
from nanoloom.frontend.custom_operators import registered_versions
from nanoloom.frontend.text_steps.steps import TextStep
from nanoloom.frontend.text_steps.texts import NO_TEXTS, Texts
from nanoloom.interface.interface import Interface
from nanoloom.interface.size_conditions import NO_CONDITIONS, SizeConditions
from nanoloom.lazy_import import load_onnx_ir
from nanoloom.model.declared_sides import TEXT, Row, Sides, describe

if TYPE_CHECKING:
    import onnx_ir

    from nanoloom.compiler import Model
    from nanoloom.notation import Computation
    from nanoloom.notation.mlir_text import Text

Array = np.ndarray
Shapes = Mapping[str, tuple[int, ...]]
MOMENT = 0.02  # seconds: long enough to find a digest that is remembered


def with_operators(digest: str) -> str:
    """The digest of a model's content together with those of a user's operators."""
    own = registered_versions()
    return of("custom operators", digest, *own) if own else digest


class Source:
    """A model before it is bound: a file, bytes or an ONNX object."""

    def __init__(self, given: object, cache: Cache) -> None:
        self.given, self._cache = given, cache
        self._model: onnx_ir.Model | None = None
        self._simplified: onnx_ir.Model | None = None
        self.texts, self.conditions = NO_TEXTS, NO_CONDITIONS  # of its interface
        self.joins = True  # whether joined names of dimensions are worth a try
        self._hashed: Future[str] = Future()
        self._seen: dict[Path, object] = {}  # its files when they were read
        if isinstance(given, str | Path):
            files = (self._hash_files, Path(given).absolute())
            Thread(target=answer, args=(self._hashed, *files)).start()
        else:
            answer(self._hashed, self._hash)

    @property
    def given(self) -> Any:
        """The model; its path as it was given, as long as that leads there."""
        given, place = self._given
        return given if place is None or Path(given).absolute() == place else place

    @given.setter
    def given(self, given: Any) -> None:
        is_file = isinstance(given, str | Path)
        self._given = given, Path(given).absolute() if is_file else None

    @property
    def digest(self) -> str:
        """A name for the content.  Large files take a while, in the background.

        With operators of the user's own it is of those, too.
        """
        try:
            return with_operators(self._hashed.result())
        except (OSError, ValueError):
            self.model()  # says what is wrong with its files
            raise

    def is_hashed(self) -> bool:
        """Whether the digest is there; if not, the cache knows nothing of the files."""
        return bool(wait([self._hashed], MOMENT).done)

    def _hash(self) -> str:
        """The digest of what is no file."""
        from nanoloom.frontend.content_digest import content_digest

        return content_digest(self.given)

    def _hash_files(self, path: Path) -> str:
        """The digest of the model's file and of those beside it with its weights."""
        from nanoloom.cache.digest import of
        from nanoloom.frontend.torch.given import is_archive, versions

        cache = self._cache
        self._see(path)
        digest = cache.file_digest(path)
        if is_archive(path):
            return of("exported", digest, versions())
        known = cache.get(key("external files", digest))
        names = (
            json.loads(known) if known is not None else self._external(cache, digest)
        )
        self._see(*(path.parent / name for name in names))
        others = [cache.file_digest(path.parent / name) for name in names]
        return of("model", digest, *others) if others else digest

    def _see(self, *paths: Path) -> None:
        self._seen |= {path: file_operations.identity(path) for path in paths}

    def unchanged(self) -> str:
        """The digest; InputError where the content is another one by now."""
        digest, files = self.digest, dict(self._seen)
        if files and not any(file_operations.is_other(*each) for each in files.items()):
            return digest
        now = self._hash_files(next(iter(files))) if files else self._hash()
        self._seen = files  # what it is now is asked again
        if now != self._hashed.result():
            raise InputError(
                "has changed since the program was compiled",
                where=next(map(str, files), "the model"),
                hint="compile it again, or reload() the program of a module",
            )
        return digest

    def _external(self, cache: Cache, digest: str) -> list[str]:
        """Names of the files that hold the model's weights beside it."""
        from nanoloom.frontend.onnx import external_files

        names = external_files(Path(str(self.given)))
        cache.put(key("external files", digest), json.dumps(names).encode())
        return names

    def model(self) -> onnx_ir.Model:
        if self._model is None:
            if self._seen and self._hashed.done() and not self._hashed.exception():
                self.unchanged()  # or another one would have its name in the cache
            with wait_for_compiler():
                load_onnx_ir()
                from nanoloom.frontend.onnx import load

                self._model = load(self.given)
        return self._model

    def simplified(self) -> onnx_ir.Model:
        """The model with what it computes of constants alone, whatever its sizes."""
        if self._simplified is None:
            with wait_for_compiler():
                from nanoloom.graph.early_constants import with_early_constants

                self._simplified = with_early_constants(self.model())
        return self._simplified

    def interface(
        self, cache: Cache
    ) -> tuple[tuple[Interface, ...], tuple[Interface, ...]]:
        """Inputs and outputs as declared, without reading a model seen before."""
        known = None
        if self.is_hashed():
            known = cache.get(key("interface", self.digest))
        if known is None:
            known = written = json.dumps(self.declared()).encode()

            def keep(hashed: Future[str]) -> None:
                if not hashed.exception():
                    cache.put(
                        key("interface", with_operators(hashed.result())), written
                    )

            self._hashed.add_done_callback(keep)
        entries, outputs, strings, inputs, steps, conditions = json.loads(known)
        self.conditions = SizeConditions.read(conditions)
        sides = [tuple(map(interface, side)) for side in (entries, outputs)]
        self.texts = Texts(
            strings,
            [TextStep.of(step) for step in steps],
            tuple(map(interface, inputs)) or sides[0],
            *sides,
        )
        return sides[0], sides[1]

    def declared(self) -> Sides:
        return describe(self.model())

    def entry(self, shapes: Shapes, values: Mapping[str, Array]) -> Model:
        """What the compiler starts from, for these input shapes."""
        return self.bound(shapes, values)

    def bound(self, shapes: Shapes, values: Mapping[str, Array]) -> onnx_ir.Model:
        """A copy of the model for these input shapes."""
        from nanoloom.frontend.symbolic_dims import bind, dims_from_inputs
        from nanoloom.graph.early_constants import own_origins
        from nanoloom.graph.stage import bind_values

        model = self.simplified()
        stand_ins = {n: np.broadcast_to(np.int8(0), s) for n, s in shapes.items()}
        bound = bind(model, dims_from_inputs(model, stand_ins))
        own_origins(bound)
        bind_values(bound, values)
        return bound

    def _values_key(self, shapes: Shapes) -> str:
        return key("value inputs", self.digest, dict(sorted(shapes.items())))

    def value_inputs(self, cache: Cache, shapes: Shapes) -> list[str]:
        """Inputs whose values were found to decide about shapes."""
        known = cache.get(self._values_key(shapes))
        return [] if known is None else json.loads(known)

    def remember_value_inputs(
        self, cache: Cache, shapes: Shapes, names: list[str]
    ) -> None:
        cache.put(self._values_key(shapes), json.dumps(names).encode())


def answer(future: Future[str], work: Callable[..., str], *arguments: object) -> None:
    """Give a future what a call returns or raises; forks wait for it."""
    with wait_for_compiler():
        try:
            future.set_result(work(*arguments))
        except BaseException as error:  # noqa: BLE001 - raised where it is asked for
            future.set_exception(error)


class Entering(Source):
    """What is no graph and enters at the linalg stage: all its shapes are known."""

    def __init__(self, given: Computation | Text) -> None:
        self.given = self.given_entry = given
        self.texts, self.conditions = NO_TEXTS, NO_CONDITIONS
        self._hashed = Future()
        self._hashed.set_result(given.digest)

    def unchanged(self) -> str:
        return self.digest  # what it was given is read already

    def declared(self) -> Sides:
        sides = (self.given_entry.inputs, self.given_entry.outputs)
        made = [[(x.name, list(x.shape or ()), x.dtype.name) for x in s] for s in sides]
        return made[0], made[1], (), (), (), ""

    def entry(self, shapes: Shapes, values: Mapping[str, Array]) -> Model:
        return self.given_entry

    def bound(self, shapes: Shapes, values: Mapping[str, Array]) -> onnx_ir.Model:
        """Raises Unsupported: nobody else runs this, or counts what it does."""
        raise Unsupported(
            "is no ONNX model, so there is nothing to compare it with",
            where=self.given_entry.place,
            hint="run it or compile it",
        )

    def value_inputs(self, cache: Cache, shapes: Shapes) -> list[str]:
        return []


def source_of(given: object, cache: Cache) -> Source:
    """The source of a model, of a computation or of MLIR text."""
    from nanoloom.notation import Computation

    if isinstance(given, Computation):
        return Entering(given)
    if is_text(given):
        with wait_for_compiler():
            from nanoloom.notation.mlir_text import Text

        return Entering(Text(given))
    if isinstance(given, str | Path) and Path(given).suffix == ".mlir":
        with wait_for_compiler():
            from nanoloom.notation.mlir_text import Text

        return Entering(Text.of_file(Path(given)))
    return Source(given, cache)


def is_text(given: object) -> TypeGuard[str]:
    """Whether a string is MLIR text, not the name of a file."""
    return isinstance(given, str) and "\n" in given and "func.func" in given


def interface(described: Row) -> Interface:
    """One input or output, of what `describe` says."""
    name, shape, said = described
    *words, dtype = said.split()
    is_text, holds = dtype == TEXT, " ".join(words)
    kind = np.dtype("int64" if is_text else dtype)
    return Interface(name, tuple(shape), kind, is_text, holds)
