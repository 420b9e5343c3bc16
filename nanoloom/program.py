"""What a user holds: a model that is compiled for the shapes it is called with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from nanoloom.cache import Cache, default_root, key
from nanoloom.errors import DataDependent, Error, InputError
from nanoloom.options import CompileOptions
from nanoloom.runtime.library import Instance, Library
from nanoloom.runtime.threads import default_threads

if TYPE_CHECKING:
    import onnx_ir

    from nanoloom.compiler import Report

Array = np.ndarray
PARAMETERS, LIBRARY = "parameters.bin", "program.so"


@dataclass(frozen=True)
class Interface:
    """An input or output as the model declares it; a dimension may be a name."""

    name: str
    shape: tuple[int | str, ...]
    dtype: np.dtype

    @property
    def is_static(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)


class Variant:
    """The program for one set of shapes, loaded."""

    def __init__(self, folder: Path, threads: int) -> None:
        self.library = Library(folder / LIBRARY)
        file = folder / PARAMETERS
        block = None
        if self.library.parameter_bytes:
            block = np.memmap(file, np.uint8, "r", shape=(self.library.parameter_bytes,))
        self.instance: Instance = self.library.create(threads, block)

    def __call__(
        self, inputs: Mapping[str, Array], nanoseconds: Array | None = None
    ) -> dict[str, Array]:
        given = [inputs[x.name] for x in self.library.inputs]
        made = {
            x.name: np.empty(x.shape, x.element.dtype) for x in self.library.outputs
        }
        self.instance.run(given, list(made.values()), nanoseconds=nanoseconds)
        return made


class Program:
    """A compiled model: call it with a dict of arrays, get a dict of arrays.

    One variant a set of input shapes is compiled when it is first needed, and kept on
    disk.  Threads may call the same program at the same time.
    """

    def __init__(
        self,
        source: Source,
        options: CompileOptions,
        *,
        threads: int,
        dims: Mapping[str, int],
        cache: Cache,
        report: Report | None = None,
    ) -> None:
        self.source = source
        self.options = options
        self.threads = threads
        self.dims = dict(dims)
        self.cache = cache
        self.report = report
        self.inputs, self.outputs = source.interface(cache)
        self._variants: dict[str, Variant] = {}

    def __call__(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Run the model.

        inputs: one array an input, of exactly the declared element type; dimensions
        with a name take the size of the array.  Raises InputError for arrays that do
        not fit, and what compiling raises at the first call with new shapes.
        """
        from nanoloom.frontend.inputs import check_inputs

        arrays = check_inputs(self.inputs, inputs)
        return self.variant(arrays)(arrays)

    def variant(self, arrays: Mapping[str, Array]) -> Variant:
        """The program for these inputs' shapes, compiled if it is not yet."""
        shapes = {name: array.shape for name, array in arrays.items()}
        values: dict[str, Array] = {}
        for name in self.source.value_inputs(self.cache, shapes):
            values[name] = arrays[name]
        while True:
            try:
                return self._variant(shapes, values)
            except DataDependent as error:
                more = {n: arrays[n] for n in error.inputs if n not in values}
                if not more:
                    raise
                values |= more
                self.source.remember_value_inputs(self.cache, shapes, list(values))

    def _variant(
        self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]
    ) -> Variant:
        parts = {n: (a.tolist(), str(a.dtype)) for n, a in sorted(values.items())}
        name = key(
            "model", self.source.digest, dict(sorted(shapes.items())), parts,
            self.options,
        )
        if name not in self._variants:
            folder = self.cache.publish_folder(
                name, lambda draft: self._build(draft, shapes, values)
            )
            self._variants[name] = Variant(folder, self.threads)
        return self._variants[name]

    def _build(
        self,
        folder: Path,
        shapes: Mapping[str, tuple[int, ...]],
        values: Mapping[str, Array],
    ) -> None:
        from nanoloom.binary.shared import Folders, write_in_process

        compiled = self._compiled(shapes, values)
        compiled.parameters.write(folder / PARAMETERS)
        write_in_process(
            compiled.objects,
            compiled.table,
            folder / LIBRARY,
            triple=self.options.target.triple,
            folders=Folders.under(self.cache.root),
        )

    def _compiled(
        self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]
    ):  # type: ignore[no-untyped-def]
        from nanoloom.compiler import Report, compile_model

        model = self.source.bound(shapes, values)
        report = self.report or Report()
        return compile_model(model, self.options, self.cache, report)

    def static_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the inputs with every name bound by `dims`.

        Raises InputError naming the dimensions without a number.
        """
        shapes: dict[str, tuple[int, ...]] = {}
        missing: dict[str, None] = {}
        for x in self.inputs:
            for d in x.shape:
                if isinstance(d, str) and d not in self.dims:
                    missing[d] = None
            shapes[x.name] = tuple(
                d if isinstance(d, int) else self.dims.get(d, 0) for d in x.shape
            )
        if missing:
            how = " ".join(f"--dim {name}=N" for name in missing)
            raise InputError(
                f"no number is given for dimension {', '.join(missing)}",
                hint=f"bind it: {how}",
            )
        return shapes

    def save(self, path: str | Path, name: str | None = None) -> Path:
        """Write a shared library with the parameters inside, and a C header beside it.

        Raises InputError if dimensions are not bound, Error if the disk refuses.
        """
        from nanoloom.binary.shared import Folders, write_shared_library

        output = Path(path)
        compiled = self._compiled(self.static_shapes(), {})
        with self.cache_scratch() as scratch:
            file = scratch / PARAMETERS
            compiled.parameters.write(file)
            write_shared_library(
                compiled.objects,
                compiled.table,
                file if compiled.parameters.size else None,
                output,
                name or output.stem,
                triple=self.options.target.triple,
                folders=Folders.under(self.cache.root),
            )
        return output

    def cache_scratch(self):  # type: ignore[no-untyped-def]
        """A temporary folder for large files on their way."""
        import tempfile
        from contextlib import contextmanager

        @contextmanager
        def folder():  # type: ignore[no-untyped-def]
            with tempfile.TemporaryDirectory(prefix="nanoloom-") as made:
                yield Path(made)

        return folder()


class Source:
    """A model before it is bound: a file, bytes or an ONNX object."""

    def __init__(self, given: object, cache: Cache) -> None:
        self.given = given
        self._model: onnx_ir.Model | None = None
        self._manifest: dict[str, object] | None = None
        self.digest = self._digest(cache)

    def _digest(self, cache: Cache) -> str:
        from nanoloom.cache.digest import of

        if isinstance(self.given, (str, Path)):
            path = Path(self.given)
            if not path.is_file():
                self.model()  # says what is wrong with it
            digest = cache.file_digest(path)
            known = cache.get(key("external files", digest))
            names = json.loads(known) if known is not None else self._external(cache, digest)
            others = [cache.file_digest(path.parent / name) for name in names]
            return of("model", digest, *others) if others else digest
        if isinstance(self.given, bytes):
            return of("bytes", self.given)
        from nanoloom.frontend.onnx import open_source

        return of("proto", open_source(self.given).proto.SerializeToString(), id(self))  # type: ignore[arg-type]

    def _external(self, cache: Cache, digest: str) -> list[str]:
        """Names of the files that hold the model's weights beside it."""
        from nanoloom.frontend.onnx import external_files

        names = external_files(Path(str(self.given)))
        cache.put(key("external files", digest), json.dumps(names).encode())
        return names

    def model(self) -> onnx_ir.Model:
        if self._model is None:
            from nanoloom.frontend.onnx import load

            self._model = load(self.given)  # type: ignore[arg-type]
        return self._model

    def interface(
        self, cache: Cache
    ) -> tuple[tuple[Interface, ...], tuple[Interface, ...]]:
        """Inputs and outputs as declared, without reading a model seen before."""
        name = key("interface", self.digest)
        known = cache.get(name)
        if known is None:
            known = json.dumps(describe(self.model())).encode()
            cache.put(name, known)
        sides = json.loads(known)
        made = [
            tuple(
                Interface(n, tuple(shape), np.dtype(dtype)) for n, shape, dtype in side
            )
            for side in sides
        ]
        return made[0], made[1]

    def bound(
        self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]
    ) -> onnx_ir.Model:
        """A copy of the model for these input shapes."""
        from nanoloom.frontend.dims import bind, dims_from_inputs
        from nanoloom.graph.stage import bind_values

        model = self.model()
        stand_ins = {n: np.broadcast_to(np.int8(0), s) for n, s in shapes.items()}
        bound = bind(model, dims_from_inputs(model, stand_ins))
        bind_values(bound, values)
        return bound

    def _values_key(self, shapes: Mapping[str, tuple[int, ...]]) -> str:
        return key("value inputs", self.digest, dict(sorted(shapes.items())))

    def value_inputs(
        self, cache: Cache, shapes: Mapping[str, tuple[int, ...]]
    ) -> list[str]:
        """Inputs whose values were found to decide about shapes."""
        known = cache.get(self._values_key(shapes))
        return [] if known is None else json.loads(known)

    def remember_value_inputs(
        self, cache: Cache, shapes: Mapping[str, tuple[int, ...]], names: list[str]
    ) -> None:
        cache.put(self._values_key(shapes), json.dumps(names).encode())


def describe(model: onnx_ir.Model) -> list[list[tuple[str, list[int | str], str]]]:
    """Inputs and outputs as JSON takes them."""
    from nanoloom.frontend.inputs import input_specs

    inputs = [(x.name, list(x.shape), x.dtype.name) for x in input_specs(model)]
    outputs = [
        (
            value.name or "",
            [d if isinstance(d, int) else str(d) for d in value.shape or ()],
            np.dtype(value.dtype.numpy()).name if value.dtype else "float32",
        )
        for value in model.graph.outputs
    ]
    return [inputs, outputs]


def compile(
    model: object,
    *,
    threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    options: CompileOptions | None = None,
    cache: Cache | None = None,
    report: Report | None = None,
) -> Program:
    """Compile an ONNX model (path, bytes, ModelProto or onnx_ir.Model) for this machine.

    threads: default follows affinity, cgroup quota and OMP_NUM_THREADS.
    dims: numbers for named dimensions; those left open are bound by the first call.
    cache: where compiled code is kept (default: the user's cache folder).
    Raises nanoloom.Error, in one sentence, if the model cannot be compiled.
    """
    from nanoloom.target.remembered import host

    store = cache or Cache(default_root())
    program = Program(
        Source(model, store),
        options or CompileOptions(host(store)),
        threads=threads or default_threads(),
        dims=dims or {},
        cache=store,
        report=report,
    )
    bound = all(isinstance(d, int) or d in program.dims for x in program.inputs for d in x.shape)
    if bound:
        prepare(program)
    return program


def prepare(program: Program) -> None:
    """Compile the only variant now, unless its shapes depend on values."""
    try:
        program._variant(program.static_shapes(), {})  # noqa: SLF001
    except DataDependent:
        if not program.inputs:
            raise


def load(path: str | Path, threads: int | None = None) -> Loaded:
    """A shared library that `Program.save` or `nanoloom compile -o` wrote."""
    return Loaded(Path(path), threads or default_threads())


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

    def __call__(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        from nanoloom.frontend.inputs import check_inputs

        arrays = check_inputs(self.inputs, inputs)
        made = {
            x.name: np.empty(x.shape, x.element.dtype) for x in self.library.outputs
        }
        self.instance.run([arrays[x.name] for x in self.inputs], list(made.values()))
        return made

    def __enter__(self) -> Loaded:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.instance.close()


Make = Callable[..., Program]
