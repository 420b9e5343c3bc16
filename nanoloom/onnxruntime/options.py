"""Options of sessions and runs: those that mean something here, and those that are
taken and change nothing."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nanoloom.onnxruntime.errors import Unavailable
from nanoloom.onnxruntime.given_weights import FOLDER, GivenWeights
from nanoloom.onnxruntime.values import OrtValue


class GraphOptimizationLevel(enum.IntEnum):
    """There is one level here: all of them are taken."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Kernels run one after the other, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Of kernels; theirs is fixed while compiling."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


@dataclass(slots=True)
class SessionOptions:
    """Options of a session.

    intra_op_num_threads: threads, 0 for as many as suit the process.  Dimensions that
    are overridden by name are bound.  weights: those that a client gives in place of
    the model's.  optimized_model_filepath, enable_profiling and libraries of operators
    are refused; the others change nothing.
    """

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    execution_order: ExecutionOrder = ExecutionOrder.DEFAULT
    graph_optimization_level: GraphOptimizationLevel = (
        GraphOptimizationLevel.ORT_ENABLE_ALL
    )
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    profile_file_prefix: str = "onnxruntime_profile_"
    optimized_model_filepath: str = ""
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    use_deterministic_compute: bool = True
    use_per_session_threads: bool = True
    weights: GivenWeights = field(default_factory=GivenWeights)
    providers: list[str] = field(default_factory=list[str])
    _dims: dict[str, int] = field(default_factory=dict[str, int])
    _entries: dict[str, str] = field(default_factory=dict[str, str])

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Bind a dimension to a number."""
        self._dims[name] = size

    def add_free_dimension_override_by_denotation(self, name: str, size: int) -> None:
        """Raises NotImplemented: dimensions have names here, and no denotations."""
        raise Unavailable(f"dimensions have no denotations here: bind {name!r} by name")

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Kept, to be asked for again; that of the folder of external weights counts.

        No other entry means anything here.
        """
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry; raises RuntimeError where there is none."""
        return entry(self._entries, "SessionOptions", key)

    @property
    def folder(self) -> str | None:
        """Where the files of external weights are, if it is said."""
        return self._entries.get(FOLDER)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """A value in place of a weight."""
        self.weights.arrays[name] = value.numpy()

    def add_external_initializers(
        self, names: Sequence[str], values: Sequence[OrtValue]
    ) -> None:
        """Values in place of weights that are in other files."""
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], contents: Sequence[bytes], lengths: Sequence[int]
    ) -> None:
        """Contents in place of the files that weights are in."""
        for name, content, length in zip(names, contents, lengths, strict=True):
            self.weights.files[name] = bytes(memoryview(content)[:length])

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """A session says which providers there are not."""
        del options
        self.providers.append(name)

    def register_custom_ops_library(self, path: str) -> None:
        """Raises NotImplemented: operators of other libraries are not called."""
        raise Unavailable(f"operators in libraries are not called here: {path}")

    def has_providers(self) -> bool:
        """Whether providers were added; the CPU is always there."""
        return bool(self.providers)

    @property
    def dims(self) -> dict[str, int]:
        """Numbers for dimensions, by name."""
        return dict(self._dims)

    def require_known(self) -> None:
        """Raise NotImplemented for options that are asked for and cannot be."""
        if self.optimized_model_filepath:
            raise Unavailable(
                "no optimized ONNX model is written here: nanoloom.compile(model).save"
                "('model.so') keeps what is compiled"
            )
        if self.enable_profiling:
            raise Unavailable(
                "no profile is written here: nanoloom profile MODEL times each layer"
            )


@dataclass(slots=True)
class RunOptions:
    """Options of a run, which are taken and change nothing but for `terminate`."""

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    terminate: bool = False
    only_execute_path_to_fetches: bool = False
    _entries: dict[str, str] = field(default_factory=dict[str, str])

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Kept, to be asked for again."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """An entry; raises RuntimeError where there is none."""
        return entry(self._entries, "RunOptions", key)


def entry(entries: Mapping[str, str], kind: str, key: str) -> str:
    """What is configured under a key; raises RuntimeError for nothing."""
    if key not in entries:
        raise RuntimeError(f"{kind} does not have configuration with key: {key}")
    return entries[key]


def threads_of(options: Any) -> int | None:
    """Threads that a session's options name; None for as many as suit the process."""
    return options.intra_op_num_threads or None
