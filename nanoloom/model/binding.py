"""A model with the shapes of its inputs: what is compiled, and under which name."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from nanoloom.cache import Cache, key
from nanoloom.dynamic.polynomial import Dims, Size
from nanoloom.dynamic.samples import Samples
from nanoloom.errors import DataDependent
from nanoloom.fork_lock import wait_for_compiler
from nanoloom.garbage import seldom_collected
from nanoloom.interface.bounds import Bounds
from nanoloom.lazy_import import load_onnx_ir
from nanoloom.model.source import Source
from nanoloom.options import ANY_VALUE, CompileOptions
from nanoloom.report import Report
from nanoloom.runtime.parameters import PARAMETERS, Weights, write_listed
from nanoloom.runtime.variant import LIBRARY, Variant

if TYPE_CHECKING:
    from nanoloom.binary.placed_weights import Placed
    from nanoloom.compile_open import OpenModel
    from nanoloom.compiler import Compiled, Model
    from nanoloom.dynamic.sample_walk import Walked

Array = np.ndarray
Values = Mapping[str, Array]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Binding:
    """A model for shapes of its inputs, and for values of inputs that decide shapes."""

    source: Source
    options: CompileOptions
    cache: Cache
    report: Report
    shapes: Mapping[str, tuple[int, ...]]
    values: Mapping[str, Array]
    _names: list[str] = field(
        default_factory=list[str], init=False, compare=False, repr=False
    )

    @property
    def name(self) -> str:
        """Of the variant, in the cache; waits for the digest of the model.

        Kept: each step asks for it, and a target has hundreds of facts to digest.
        """
        if not self._names:
            self._names.append(self._named())
        return self._names[0]

    def _named(self) -> str:
        sizes = dict(sorted(self.shapes.items()))
        said = sizes, self.numbers, self.options.content
        return key("model", self.source.digest, *said)

    @property
    def numbers(self) -> dict[str, tuple[object, str]]:
        """The values of inputs, as a key has them."""
        return {n: (a.tolist(), str(a.dtype)) for n, a in sorted(self.values.items())}

    def loaded(self, threads: int) -> Variant:
        """The program in this process; compiled, if the cache has not all of it.

        Of several processes that ask at once, one compiles it.
        """
        with self.cache.making(self.name):
            return self._loaded(threads)

    def _loaded(self, threads: int) -> Variant:
        made = functools.cache(self.placed)  # the disk may want it twice
        weights = Weights(self.cache, lambda name, file: made().write_large(name, file))
        for _ in range(2):
            with self.cache.folder(
                self.name, lambda draft: self.write(made(), draft)
            ) as folder:
                try:
                    with self.report.waiting("load"):
                        pairs = self.options.in_place
                        return Variant(folder, threads, weights, pairs)
                except LookupError:
                    # It was compiled otherwise this time: a search may find others.
                    self.cache.forget(self.name)
        raise AssertionError("what was written just now has other weights")

    def placed(self) -> Placed:
        """The program with its large weights in files of their own."""
        with self.report.waiting("start"), wait_for_compiler():
            from nanoloom.binary.placed_weights import placed

        linked = self.to_link()
        with self.report.waiting("weights"):
            return placed(linked)

    def write(self, placed: Placed, folder: Path) -> None:
        """Write what a Variant of this process is read from, but for large weights."""
        with self.report.waiting("start"), wait_for_compiler():
            from nanoloom.binary.shared import write_in_process

        with self.report.waiting("weights"):
            placed.write_small(folder / PARAMETERS)
            write_listed(folder, placed.listed())
        with self.report.waiting("link"):
            write_in_process(
                placed.objects,
                placed.table,
                folder / LIBRARY,
                triple=self.options.target.triple,
                cache=self.cache,
            )

    def to_link(self) -> Compiled:
        """The program; what a library holds beside it is in the cache meanwhile."""
        self._start_workers()
        with self.report.waiting("start"), wait_for_compiler():
            from nanoloom.binary.shared import runtime_meanwhile

        triple = self.options.target.triple
        with self.report.waiting("runtime"), runtime_meanwhile(triple, self.cache):
            return self._compiled()

    def compiled(self) -> Compiled:
        """The program, its kernels from the cache where it has them."""
        self._start_workers()
        return self._compiled()

    @seldom_collected()
    def _compiled(self) -> Compiled:
        with self.report.waiting("start"), wait_for_compiler():
            load_onnx_ir()
            importlib.import_module("nanoloom.compiler")

        compiled = self.made(self.report)
        self.cache.put(key("made", self.name), b"")
        return compiled

    def made(self, report: Report) -> Compiled:
        """The program, compiled."""
        from nanoloom.compiler import compile_model

        self.source.conditions.require(self.shapes)
        with report.waiting("read"):
            model = self._entry(self.shapes)
        return compile_model(model, self.options, self.cache, report)

    def _entry(self, shapes: Mapping[str, tuple[int, ...]]) -> Model:
        model = self.source.entry(shapes, self.values)
        if self.options.any_value:
            for_any_value(model)
        return model

    def _start_workers(self) -> None:
        """Before the compiler is loaded here: it takes as long there."""
        with self.report.waiting("start"), wait_for_compiler():
            from nanoloom.workers.pool import start_early
        if not self._is_made():  # else the cache has its kernels
            start_early(self.report.workers)

    def _is_made(self) -> bool:
        """Whether the cache has seen this variant, as far as is known at once."""
        if not self.source.is_hashed():
            return False
        return self.cache.get(key("made", self.name)) is not None


@dataclass(frozen=True)
class OpenBinding(Binding):
    """A model for all sizes of some dimensions; `samples` of them stand for the others.

    shapes: of the inputs, by the first sample; declared: as the model has them.
    bounds: of the dimensions by name.  walked: what other samples have found out.
    limits: sizes that may not be below 0, as the model says itself.
    """

    samples: Samples
    shapes_of: Callable[[Dims], Mapping[str, tuple[int, ...]]]
    bounds: Mapping[str, Bounds]
    declared: Sequence[Sequence[int | str]]
    limits: tuple[Size, ...] = ()
    walked: Walked = field(default_factory=dict)

    def _named(self) -> str:
        samples = [dict(sorted(sample.items())) for sample in self.samples]
        first = dict(sorted(self.shapes.items()))
        bounds = {name: repr(self.bounds[name]) for name in sorted(self.bounds)}
        said = first, self.numbers, self.options.content, bounds
        return key("sizes", self.source.digest, samples, *said)

    def made(self, report: Report) -> Compiled:
        """Raises Differs where the model has no program for all sizes."""
        from nanoloom.compile_open import compile_open

        return compile_open(self.open_model(), self.options, self.cache, report)

    def require(self, report: Report) -> None:
        """Raise Differs where the model has no program for all sizes; as far as cut."""
        from nanoloom.compile_open import cut_open

        cut_open(self.open_model(), self.options, report)

    def open_model(self) -> OpenModel:
        import onnx_ir

        from nanoloom.compile_open import OpenModel
        from nanoloom.dynamic.recurrent_batch import require_steps
        from nanoloom.dynamic.whole_floats import use_whole_numbers

        require_steps(self.source.model().graph, self.samples)

        def bound(dims: Dims) -> Model:
            with self.report.waiting("read"):
                model = self._entry(self.shapes_of(dims))
            if isinstance(model, onnx_ir.Model):
                use_whole_numbers(model.graph)
            return model

        given = self.samples, self.bounds, self.declared, self.limits, self.walked
        return OpenModel(bound, *given)


def for_any_value(model: Model) -> None:
    """Let no program of a graph be for one value of its inputs alone."""
    graph = getattr(model, "graph", None)
    if graph is not None:  # else it is no graph, and has no branches
        graph.meta[ANY_VALUE] = True


def values_of(arrays: Values, names: Iterable[str]) -> tuple[bytes, ...]:
    return tuple([arrays[name].tobytes() for name in names])


def deciding(
    arrays: Values, known: Iterable[str], made: Callable[[Values], Made]
) -> tuple[Made, tuple[str, ...]]:
    """What is made with the values of inputs that decide shapes, and their names.

    known: such inputs, of which more are found as it is made.
    """
    values = {name: arrays[name] for name in known}
    while True:
        try:
            return made(values), tuple(values)
        except DataDependent as error:
            more = {n: arrays[n] for n in error.inputs if n not in values}
            if not more:
                raise
            values |= more
