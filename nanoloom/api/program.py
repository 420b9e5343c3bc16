"""What a user holds: a model that is compiled for the shapes it is called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nanoloom.api.calling import CallableProgram, Into
from nanoloom.api.named_sizes import NamedSizes
from nanoloom.api.saved_program import to_save
from nanoloom.api.sessions.compiled_session import CompiledSession, Once, Pairs
from nanoloom.cache import Cache
from nanoloom.cache.file_operations import is_same
from nanoloom.errors import Error, InputError, public
from nanoloom.explain.explainable import Explainable
from nanoloom.interface.bounds import require_within, static_shapes
from nanoloom.interface.check_inputs import given_shapes
from nanoloom.interface.named_file import named_file
from nanoloom.model.binding import Binding, deciding, values_of
from nanoloom.model.model_facts import metadata_of, name_of
from nanoloom.model.pickled import Pickled
from nanoloom.model.source import Source
from nanoloom.options import CompileOptions
from nanoloom.report import Report
from nanoloom.runtime.bounded_cache import BoundedCache
from nanoloom.runtime.grouped import are_known, grouped
from nanoloom.runtime.variant import Variant

if TYPE_CHECKING:
    from nanoloom.binary.assemble import Compiled
    from nanoloom.binary.output_forms import Form
    from nanoloom.target.facts import Target

Array = np.ndarray
Given = Mapping[str, tuple[int, ...]]  # shapes of inputs by their names
Shapes = tuple[tuple[str, tuple[int, ...]], ...]  # the same as a key
Names = tuple[str, ...]
Call = tuple[Shapes, tuple[bytes, ...]]  # and the values that decide shapes
# Of a program in memory: a variant has threads of its own.
MOST_VARIANTS, MOST_BYTES = 32, 1 << 30
MOST_CALLS, MOST_VALUES = 1024, 16 << 20  # shapes, and bytes of values, remembered


class Program(NamedSizes, CallableProgram, Explainable):
    """A compiled model: call it with a dict of arrays, get a dict of arrays.

    Dimensions with a name are sizes that the program takes at each call, where that is
    possible (docs/sizes.md): it is compiled once, at the first call.  Otherwise one
    variant a set of input shapes is compiled when it is first needed.  All is kept on
    disk; weights are there once for all of it.  In memory are the variants used last:
    at most MOST_VARIANTS, and MOST_BYTES of working memory, one at least.  Threads may
    call it at the same time.  It pickles as the model's path, or its bytes: the other
    process finds the code in its cache, or compiles it.

    inputs, outputs: name, shape and dtype of each.  dims, bounds: those given.
    open: for all sizes; open.reason says why not.  threads: that it runs with.
    variants: what is in memory, one for each set of shapes; of a program for all sizes
    they share one code.
    """

    def __init__(
        self,
        source: Source,
        options: CompileOptions,
        *,
        threads: int,
        dims: Mapping[str, object],
        cache: Cache,
        report: Report | None = None,
    ) -> None:
        self.options, self._in_place = options, options.in_place
        self.threads, self.cache, self.report = threads, cache, report or Report()
        self._declare(source, dims)
        self.variants = BoundedCache[str, Variant](
            MOST_VARIANTS, MOST_BYTES, lambda _, variant: variant.instance.arena_bytes
        )
        self._called = BoundedCache[Call, str](
            MOST_CALLS, MOST_VALUES, lambda call, _: sum(map(len, call[1]))
        )
        self._deciding = BoundedCache[Shapes, Names](MOST_CALLS, 0, lambda *_: 0)

    def _run(self, inputs: Mapping[str, object], into: Into) -> dict[str, Array]:
        if self._has_texts:
            return self._texts.call(inputs, partial(self._numbers, into=into))
        return self._numbers(inputs, into)

    def _numbers(self, inputs: Mapping[str, object], into: Into) -> dict[str, Array]:
        last = self._last
        if last is not None and type(inputs) is dict and not into:
            if (made := last.exactly(inputs)) is not None:
                return grouped(made, self.outputs) if self._has_lists else made
            self.variants.get(last.name)  # it was used until now
        found = self.variant(arrays := self.checked(inputs))
        self._last = found if self.is_known_by_shapes(found, arrays) else None
        return grouped(found(arrays, into=into), self.outputs)

    def is_known_by_shapes(self, found: Variant, arrays: Mapping[str, Array]) -> bool:
        """Whether arrays of the same shapes are a variant's, with outputs as it has."""
        given = tuple([(name, array.shape) for name, array in arrays.items()])
        self._has_lists = not {x.name for x in self.outputs} <= {*found.outputs}
        known = are_known(found.outputs, self.outputs)
        return known and self._deciding.get(given) == ()

    @property
    def _title(self) -> str:
        return f"nanoloom.Program {name_of(self.source)}"

    @public
    def metadata(self) -> dict[str, str]:
        """What the model says of itself: its producer, versions and properties."""
        return metadata_of(self.source)

    def __reduce__(self) -> tuple[object, ...]:
        own = self.source, self.options, self.cache, self.dims | self.bounds
        return type(self)._restored, (Pickled.of(*own, self.threads),)

    @classmethod
    def _restored(cls, pickled: Pickled) -> Program:
        return pickled.restored(cls)

    def variant(self, arrays: Mapping[str, Array]) -> Variant:
        """The program for these inputs' shapes, compiled if it is not yet."""
        given = tuple([(name, array.shape) for name, array in arrays.items()])
        names = self._deciding.get(given) or ()
        called = self._called.get((given, values_of(arrays, names)))
        if (found := self.variants.get(called) if called else None) is None:
            found, names = self._variant(arrays, dict(given))
            self._deciding.put(given, names)
            self._called.put((given, values_of(arrays, names)), found.name)
        return found

    def _variant(
        self, arrays: Mapping[str, Array], shapes: Given
    ) -> tuple[Variant, tuple[str, ...]]:
        """The variant, and the inputs whose values decide it beside their shapes."""
        self._require_here()
        require_within(self.bounds, self.entries, shapes)
        known = self.source.value_inputs(self.cache, shapes)
        made = partial(self.variant_of, shapes)
        plain = None if known else lambda: None if self.other(shapes) else made({})
        if (bound := self.roomed.found(shapes, self.threads, plain, made)) is not None:
            self.variants.put(bound.name, bound)
            if bound.library.lacks_branches:
                bound.otherwise = lambda arrays: self._of_values(shapes, arrays)[0]
            return bound, ()
        if (other := self.other(shapes)) is not None:
            other.joins = False  # once
            self._declare(other, self.dims | self.bounds)
            return self._variant(arrays, shapes)
        return self.roomed.without(shapes, partial(self._of_values, shapes, arrays))

    def _of_values(
        self, shapes: Given, arrays: Mapping[str, Array]
    ) -> tuple[Variant, tuple[str, ...]]:
        """The same for these shapes alone, and for values that decide others."""
        known = self.source.value_inputs(self.cache, shapes)
        found, names = deciding(arrays, known, partial(self.variant_of, shapes))
        if len(names) > len(known):
            self.source.remember_value_inputs(self.cache, shapes, list(names))
        return found, names

    def variant_of(self, shapes: Given, values: Mapping[str, Array]) -> Variant:
        """The program for these shapes, and for values of inputs that decide shapes."""
        binding = self._binding(shapes, values)
        if found := self.variants.get(binding.name):
            return found
        self._require_here()
        made = binding.loaded(self.threads)
        self.variants.put(made.name, made)
        return made

    def _binding(self, shapes: Given, values: Mapping[str, Array]) -> Binding:
        own = self.source, self.options, self.cache, self.report
        return Binding(*own, shapes, values)

    def is_for_this_machine(self) -> bool:
        from nanoloom.target.cached_host import host

        return self.options.target.arch == host(self.cache).arch

    def _require_here(self) -> None:
        """Error if this machine cannot run the program."""
        if not self.is_for_this_machine():
            raise Error(
                f"the program is for {self.options.target.arch}, not for this machine",
                hint='save(path, form="executable") writes it',
            )

    def static_shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs; raises InputError for dimensions without a number."""
        return static_shapes(self.entries, self.dims)

    @public
    def session(
        self, capacity: int = 0, pairs: Pairs = None, once: Once = None
    ) -> CompiledSession:
        """Calls one after the other that keep keys and values (docs/decoding.md).

        capacity: tokens that there is room for at first.  pairs: past inputs, and the
        outputs that extend them, where they are not named so.  once: inputs that stay
        from call to call.  Raises InputError for a model without such inputs.
        """
        self._texts.require_no_steps("a session")
        own = self.open, self.outputs, self.threads, self, capacity
        return CompiledSession(*own, pairs, once)

    @public
    def save(
        self,
        path: str | Path,
        name: str | None = None,
        *,
        form: Form | None = None,
        shapes: Given | None = None,
        levels: Sequence[Target] = (),
        session: bool | Mapping[str, str] = False,
    ) -> Path:
        """Write the program with its parameters inside, and a C header to a library.

        form: "shared", "static", "bare" (for machines without an operating system) or
        "executable"; by default "static" for .a, else "shared".  shapes: of the inputs;
        of the bound dimensions and any of the others, which are sizes, by default.
        levels: targets in place of its own (target.named.levels), the least first, of
        which the CPU says the one.  session: a library keeps past keys and values
        between runs; as the pairs of `session`, where those are not found.  Raises
        InputError for dimensions that are not bound and cannot be sizes, else Error.
        """
        with self.report.waiting("start"):
            from nanoloom.binary import output_forms

        self._texts.require_no_steps("a saved program")
        output, chosen = named_file(path), self.options
        form = output_forms.form_of(form, output, len(levels), session=bool(session))
        called, digest = name or output.stem, self.source.unchanged()
        require_other(output, self.source.given)
        made: list[tuple[output_forms.Identity, Compiled]] = []
        for target in levels or (chosen.target,):
            said = called, digest, target, chosen.precision, self._texts.of_code
            of = self.with_options(target=target) if levels or chosen.in_place else self
            one = of._compiled(form, given_shapes(shapes, self.entries), session)
            made.append((output_forms.Identity(*said), one))
        with self.report.waiting("link"):
            output_forms.write(form, made, output, self.cache)
        return output

    def _loaded(self) -> tuple[Variant, ...]:
        return (*self.variants.values(), *self.open.loaded)

    def with_options(self, **changed: object) -> Program:
        """The same with other options, each output in memory of its own."""
        return Program(
            self.source,
            replace(self.options, in_place=(), **changed),
            threads=self.threads,
            dims=self.dims | self.bounds,
            cache=self.cache,
            report=self.report,
        )

    def _compiled(
        self, form: Form, shapes: Given | None, session: bool | Mapping[str, str]
    ) -> Compiled:
        """The program as a form is written of it."""
        if session:
            return self.session(pairs=None if session is True else session).compiled()
        return self.roomed.compiled(partial(to_save, self, form, shapes), shapes)

    def bound(self, form: Form, shapes: Given | None) -> Compiled:
        if shapes is None and self.open.names and form != "bare":
            return self.open.compiled("it cannot be a size at run time")
        binding = self._binding(shapes or self.static_shapes(), {})
        return binding.to_link() if form == "shared" else binding.compiled()


def require_other(path: Path, given: object) -> None:
    """Raise InputError for the file of the given model, which would be gone."""
    if isinstance(given, str | Path) and is_same(path, Path(given)):
        hint = "name another file"
        raise InputError("is the model's own file", where=str(path), hint=hint)
