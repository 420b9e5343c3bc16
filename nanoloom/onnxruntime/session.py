"""`InferenceSession`: a program of nanoloom's, called as ONNX Runtime's clients do."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from nanoloom.api.calling import CallableProgram
from nanoloom.api.loaded import load
from nanoloom.api.program import Program
from nanoloom.compile_program import compile as compile_model
from nanoloom.errors import ModelError
from nanoloom.onnxruntime.binding import IOBinding
from nanoloom.onnxruntime.described import ModelMetadata, NodeArg
from nanoloom.onnxruntime.errors import Fail, InvalidArgument, translating
from nanoloom.onnxruntime.given_weights import defaults, without
from nanoloom.onnxruntime.options import RunOptions, SessionOptions, threads_of
from nanoloom.onnxruntime.values import OrtValue

PROVIDER = "CPUExecutionProvider"
Callback = Callable[[Any, Any, str], object]  # results, data, error


class InferenceSession:
    """A model that is compiled for this CPU.

    path_or_bytes: an ONNX file or its bytes, or a library that nanoloom wrote (.so).
    A model whose shapes are all known is compiled here; one with open dimensions at the
    first run.  Both are kept in the cache.  Raises the classes of ONNX Runtime.
    """

    @translating
    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: object,
    ) -> None:
        del provider_options, kwargs
        require_model(path_or_bytes)
        self._options = known(sess_options)
        warn_of(self._options.providers)
        warn_of(providers or ())
        is_bytes = isinstance(path_or_bytes, bytes)
        # Clients (optimum) read these, as ONNX Runtime calls them.
        self._model_path = None if is_bytes else os.fspath(path_or_bytes)
        self._model_bytes = path_or_bytes if is_bytes else None
        self._given = given_to(path_or_bytes, self._options)
        self._program = program_of(self._given, self._options)
        self._overridden: dict[frozenset[str], CallableProgram] = {}
        if isinstance(self._program, Program) and not is_open(self._program):
            self._program.variant_of(self._program.static_shapes(), {})

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg.of(x) for x in self._program.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg.of(x) for x in self._program.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs that a weight is the default of; a library's weights are fixed."""
        return [NodeArg.of_weight(n, *x) for n, x in self._defaults.items()]

    @cached_property
    def _defaults(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        return defaults(self._given) if isinstance(self._program, Program) else {}

    def _program_for(self, feeds: Mapping[str, Any]) -> CallableProgram:
        """One for the inputs that a call gives: with weights among them, another one,
        which is compiled at the first such call."""
        more = frozenset(feeds).difference(x.name for x in self._program.inputs)
        if not more or not more <= {*self._defaults}:
            return self._program  # which refuses what it does not know
        found = self._overridden.get(more)
        if found is None:
            found = program_of(without(self._given, more), self._options)
            self._overridden[more] = found
        return found

    @translating
    def get_modelmeta(self) -> ModelMetadata:
        if isinstance(self._program, Program):
            return ModelMetadata.of(self._program.metadata())
        return ModelMetadata()

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list[str]:
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {PROVIDER: {}}

    def set_providers(self, providers: Sequence[Any] = (), *_: object) -> None:
        warn_of(providers)

    def disable_fallback(self) -> None:
        """There is one provider."""

    def enable_fallback(self) -> None:
        """There is one provider."""

    def end_profiling(self) -> str:
        """No file is written: enable_profiling is refused."""
        return ""

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Outputs in the order of their names; all of them for None or none."""
        require_going(run_options)
        kinds = {x.name: x.dtype for x in self._program.inputs if not x.is_text}
        feeds = {n: plain(value, kinds.get(n)) for n, value in input_feed.items()}
        names = list(output_names or (x.name for x in self._program.outputs))
        made = self.computed(feeds, names, {})
        return [made[name] for name in names]

    @translating
    def computed(
        self, feeds: Mapping[str, Any], names: Sequence[str], into: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Outputs by name.  into: arrays that some are written to."""
        self.require_inputs(feeds)
        program = self._program_for(feeds)
        try:
            return program.run(feeds, list(dict.fromkeys(names)), into=into)
        except ModelError as error:  # of sizes that do not go together
            raise Fail(str(error)) from error

    def require_inputs(self, feeds: Mapping[str, Any]) -> None:
        """Raise ValueError for inputs that are not there."""
        sides = [x for x in self._program.inputs if "optional" not in x.holds]
        if missing := [x.name for x in sides if x.name not in feeds]:
            given = list(feeds)
            said = f"Required inputs ({missing}) are missing from input feed ({given})."
            raise ValueError(said)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """The same of values, to values."""
        made = self.run(output_names, input_dict_ort_values, run_options)
        return [OrtValue(each) for each in made]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callback,
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run in another thread, which calls `callback(results, user_data, error)`."""
        self.require_inputs(input_feed)

        def work() -> None:
            try:
                made = self.run(output_names, input_feed, run_options)
            except Exception as error:  # noqa: BLE001 - told to the callback
                callback([], user_data, str(error))
            else:
                callback(made, user_data, "")

        Thread(target=work, name="nanoloom run_async").start()

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run with the inputs and outputs that are bound."""
        require_going(run_options)
        iobinding.run()


def program_of(given: Any, options: SessionOptions) -> CallableProgram:
    """What a session runs."""
    if isinstance(given, str | os.PathLike) and Path(given).suffix == ".so":
        return load(Path(given), threads_of(options))
    return compile_model(given, threads=threads_of(options), dims=options.dims)


def known(options: Any) -> SessionOptions:
    """A session's options; raises TypeError for what is none."""
    if options is None:
        return SessionOptions()
    if not isinstance(options, SessionOptions):
        kind = f"{type(options).__module__}.{type(options).__qualname__}"
        raise TypeError(f"sess_options is a {kind}, no {SessionOptions.__module__}'s")
    options.require_known()
    return options


def require_model(given: object) -> None:
    """Raise TypeError for what is neither a path nor bytes."""
    if not isinstance(given, str | bytes | os.PathLike):
        raise TypeError(f"Unable to load from type '{type(given)}'")


def given_to(model: Any, options: SessionOptions) -> Any:
    """What is compiled: the model, or one with the weights that a client gives."""
    path = model if isinstance(model, bytes) else Path(model)
    if not isinstance(path, bytes) and path.suffix == ".so":
        return path
    return options.weights.model(path, options.folder)


def is_open(program: Program) -> bool:
    """Whether a dimension has no number, or an input is no array of numbers."""
    bound = set(program.dims)
    shapes = [x.shape for x in program.entries]
    return any(isinstance(d, str) and d not in bound for s in shapes for d in s)


def plain(value: Any, kind: np.dtype[Any] | None) -> Any:
    """What is in an OrtValue, and arrays in this machine's order of bytes."""
    value = value.numpy() if isinstance(value, OrtValue) else listed(value, kind)
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        return value.astype(value.dtype.newbyteorder("="))
    return value


def listed(value: Any, kind: np.dtype[Any] | None) -> Any:
    """Lists of numbers and of strings as arrays; lists of arrays are sequences.

    kind: the element type that the model wants: lists of numbers have none of their
    own.
    """
    if not isinstance(value, list) or any(isinstance(x, np.ndarray) for x in value):
        return value
    made = np.array(value)
    if kind is None or made.dtype.kind not in "iuf":
        return made
    # No fraction is cut off.
    fits = made.dtype.kind != "f" or not np.issubdtype(kind, np.integer)
    return made.astype(kind) if fits and kind.kind != "b" else made


def require_going(options: RunOptions | None) -> None:
    """Raise Fail for a run that is ended before it begins."""
    if options is not None and options.terminate:
        raise Fail("Exiting due to terminate flag being set to true.")


def warn_of(providers: Sequence[Any]) -> None:
    """Say which providers there are not; raise InvalidArgument for no names."""
    for each in [providers] if isinstance(providers, str) else providers:
        name = each[0] if isinstance(each, tuple) else each
        if not isinstance(name, str):
            raise InvalidArgument(f"{each!r} is no name of a provider")
        if name != PROVIDER:
            said = f"provider {name!r} is not here: the model runs on the CPU"
            warnings.warn(said, UserWarning, stacklevel=3)
