"""What a user holds: a model that is compiled for the shapes it is called with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nanoloom.binding import Binding, deciding
from nanoloom.cache import Cache
from nanoloom.errors import DataDependent, Error, public
from nanoloom.fork_lock import wait_for_compiler
from nanoloom.frontend.dimension_values import check_known
from nanoloom.frontend.files import named_file
from nanoloom.frontend.inputs import check_inputs
from nanoloom.open_program import OpenProgram
from nanoloom.options import CompileOptions, Precision, options_with
from nanoloom.runtime.bounded_cache import BoundedCache
from nanoloom.runtime.threads import thread_count
from nanoloom.runtime.variant import Variant
from nanoloom.sessions.compiled_session import CompiledSession, Once, Pairs
from nanoloom.sizes.bounds import parted, require_within, static_shapes
from nanoloom.source import Source, bound_dims, source_of

if TYPE_CHECKING:
    from nanoloom.binary.assemble import Compiled
    from nanoloom.binary.output_forms import Form
    from nanoloom.compiler import Report
    from nanoloom.nest.nest import LoopNest
    from nanoloom.target.facts import Target

Array = np.ndarray
Given = Mapping[str, tuple[int, ...]]  # shapes of inputs by their names
Shapes = tuple[tuple[str, tuple[int, ...]], ...]  # the same as a key
Call = tuple[Shapes, tuple[bytes, ...]]  # and the values that decide shapes
_INSTEAD = "compile the model where it is to run (the cache has its code), or save it"
# Of a program in memory: a variant has threads of its own.
MOST_VARIANTS, MOST_BYTES = 32, 1 << 30
MOST_CALLS, MOST_VALUES = 1024, 16 << 20  # shapes, and bytes of values, remembered


def values_of(arrays: Mapping[str, Array], names: Iterable[str]) -> tuple[bytes, ...]:
    return tuple([arrays[name].tobytes() for name in names])


class Program:
    """A compiled model: call it with a dict of arrays, get a dict of arrays.

    Dimensions with a name are sizes that the program takes at each call, where that is
    possible (sizes/graph.py): it is compiled once, at the first call.  Otherwise one
    variant a set of input shapes is compiled when it is first needed.  All is kept on
    disk; weights are there once for all of it.  In memory are the variants that were
    used last: at most MOST_VARIANTS, and MOST_BYTES of working memory, one at least.
    Threads may call the same program at the same time.

    inputs, outputs: name, shape and dtype of each.  dims, bounds: those given.
    open: for all sizes; open.reason says why not.  threads: that it runs with.
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
        self.source, self.options = source, options
        self.threads, self.cache, self.report = threads, cache, report
        self.inputs, self.outputs = source.interface(cache)
        numbers, self.bounds = parted(dims)
        self.dims = bound_dims(self.inputs, numbers)
        self.texts = [d for x in self.inputs for d in x.shape if isinstance(d, str)]
        check_known(self.texts, self.bounds)
        self.variants = BoundedCache[str, Variant](
            MOST_VARIANTS, MOST_BYTES, lambda _, variant: variant.instance.arena_bytes
        )
        self._called = BoundedCache[Call, str](
            MOST_CALLS, MOST_VALUES, lambda call, _: sum(map(len, call[1]))
        )
        self.open = OpenProgram(
            self.inputs, self.dims, source, options, cache, report, self.bounds
        )
        self._deciding = BoundedCache[Shapes, tuple[str, ...]](
            MOST_CALLS, 0, lambda *_: 0
        )

    @public
    def __call__(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Run the model.

        inputs: one array an input, of exactly the declared element type; dimensions
        with a name take the size of the array.  Raises InputError for arrays that do
        not fit, or whose indices lead out of range, and what compiling raises at the
        first call with new shapes.
        """
        arrays = check_inputs(self.inputs, inputs, self.dims)
        return self.variant(arrays)(arrays)

    def __reduce__(self) -> tuple[object, ...]:
        raise Error("a Program cannot be pickled", hint=_INSTEAD)

    def variant(self, arrays: Mapping[str, Array]) -> Variant:
        """The program for these inputs' shapes, compiled if it is not yet."""
        given = tuple([(name, array.shape) for name, array in arrays.items()])
        names = self._deciding.get(given) or ()
        called = self._called.get((given, values_of(arrays, names)))
        found = self.variants.get(called) if called else None
        if found is None:
            found, names = self._variant(arrays, dict(given))
            self._deciding.put(given, names)
            self._called.put((given, values_of(arrays, names)), found.name)
        return found

    def _variant(
        self, arrays: Mapping[str, Array], shapes: Given
    ) -> tuple[Variant, tuple[str, ...]]:
        """The variant, and the inputs whose values decide it beside their shapes."""
        self._require_here()
        require_within(self.bounds, self.inputs, shapes)
        if (bound := self.open.bound(shapes, self.threads)) is not None:
            self.variants.put(bound.name, bound)
            return bound, ()
        known = self.source.value_inputs(self.cache, shapes)
        found, names = deciding(arrays, known, lambda v: self.variant_of(shapes, v))
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
        return Binding(
            self.source, self.options, self.cache, self.report, shapes, values
        )

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
        return static_shapes(self.inputs, self.dims)

    @public
    def session(
        self, capacity: int = 0, pairs: Pairs = None, once: Once = None
    ) -> CompiledSession:
        """Calls one after the other that keep keys and values (sessions/session.py)."""
        own = self.open, self.outputs, self.threads, self
        return CompiledSession(*own, capacity, pairs, once)

    @public
    def nests(self) -> dict[str, LoopNest]:
        """The loops of every kernel by its name, for the bound dimensions; they print.

        Raises InputError if dimensions are not bound.
        """
        with wait_for_compiler():
            from nanoloom.compiler import Report, partition_model

        model = self.source.entry(self.static_shapes(), {})
        program = partition_model(model, self.options, self.report or Report())
        return {name: kernel.nest for name, kernel in program.kernels.items()}

    @public
    def save(
        self,
        path: str | Path,
        name: str | None = None,
        *,
        form: Form = "shared",
        shapes: Given | None = None,
        levels: Sequence[Target] = (),
        session: bool | Mapping[str, str] = False,
    ) -> Path:
        """Write the program with its parameters inside, and a C header to a library.

        form: "shared", "static", "bare" (for machines without an operating system) or
        "executable".  shapes: of the inputs; by default, of the bound dimensions, and
        any of the others, which are sizes then.  levels: targets in place of its own
        (target.named.levels), the least first, of which the CPU says the one.
        session: a library keeps past keys and values between runs; as the pairs of
        `session`, where those are not found.  Raises InputError if dimensions are not
        bound and cannot be sizes, Error if the disk refuses.
        """
        from nanoloom.binary import output_forms

        output, chosen = named_file(path), self.options
        output_forms.require_form(form, len(levels), session=bool(session))
        called, digest = name or output.stem, self.source.digest
        made: list[tuple[output_forms.Identity, Compiled]] = []
        for target in levels or (chosen.target,):
            identity = output_forms.Identity(called, digest, target, chosen.precision)
            program = self._for(target) if levels else self
            made.append((identity, program._compiled(form, shapes, session)))
        output_forms.write(form, made, output, self.cache)
        return output

    def _for(self, target: Target) -> Program:
        """The same for another CPU."""
        return Program(
            self.source,
            replace(self.options, target=target),
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
            pairs = None if isinstance(session, bool) else session
            compiled = self.session(pairs=pairs).compiled()
        elif shapes is None and self.open.names and form != "bare":
            compiled = self.open.compiled("it cannot be a size at run time")
        else:
            binding = self._binding(shapes or self.static_shapes(), {})
            compiled = binding.to_link() if form == "shared" else binding.compiled()
        return compiled


@public
def compile(
    model: object,
    *,
    threads: int | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    precision: Precision | None = None,
    checked: bool | None = None,
    exact_conv: bool | None = None,
    options: CompileOptions | None = None,
    cache: str | Path | Cache | None = None,
    report: Report | None = None,
) -> Program:
    """Compile a model (path, bytes, ModelProto, onnx_ir.Model) or a computation.

    A computation is what `nanoloom.computation` gives, a file .mlir, or MLIR text.

    threads: 1 to 1024; default: NANOLOOM_THREADS, or what affinity, cgroup
    quota and OMP_NUM_THREADS allow.
    dims: numbers for named dimensions, or pairs of bounds (least, most); those left
    open are sizes that each call brings.
    precision: "f32" (default) or "bf16", of the products of f32 operands.
    checked: False for code that clamps an index out of range and does not report it.
    exact_conv: True for convolutions by sums of products only, not by Winograd's method
    (the default where that is faster; docs/convolutions.md has the error bound).
    options: all that decides about the code; the three above are among them.
    cache: the folder where compiled code is kept; default: NANOLOOM_CACHE, or the
    user's (docs/cache.md).
    Raises nanoloom.Error, in one sentence, if the model cannot be compiled.
    """
    said = {"precision": precision, "checked": checked, "exact_conv": exact_conv}
    wanted = thread_count(threads)
    store = Cache.of(cache)
    program = Program(
        source_of(model, store),
        options_with(options, said, store),
        threads=wanted,
        dims=dims or {},
        cache=store,
        report=report,
    )
    if program.is_for_this_machine():  # else when it is saved
        prepare(program)
    return program


def prepare(program: Program) -> None:
    """Compile the only variant now, if there is but one: no shape is left open."""
    if any(text not in program.dims for text in program.texts):
        return
    try:
        program.variant_of(program.static_shapes(), {})
    except DataDependent:
        if not program.inputs:
            raise
