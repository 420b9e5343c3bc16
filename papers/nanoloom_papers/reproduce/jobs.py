"""What a peer is given to run, and what it makes of it.

A peer is a function `open(job) -> Ready` named by "module:function", so that it can be
called in a process of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from nanoloom.errors import Error
from nanoloom_papers.reproduce import array_files
from nanoloom_papers.reproduce.array_files import Array


@dataclass(frozen=True)
class Job:
    """A task for a peer.

    model: an ONNX file; inputs: of it, as `stored.save` wrote them.  arrays: all
    numbers of the task, for peers that read no ONNX.  precision: f32 or bf16, for
    systems that would choose by themselves.  task, facts: what else `open` must know.
    """

    threads: int
    model: str = ""
    inputs: str = ""
    arrays: str = ""
    precision: str = "f32"
    task: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @cached_property
    def feeds(self) -> dict[str, Array]:
        """The inputs of the ONNX model by name."""
        return array_files.load(Path(self.inputs))

    @cached_property
    def numbers(self) -> dict[str, Array]:
        """All arrays of the task by name."""
        return array_files.load(Path(self.arrays))


@dataclass(frozen=True)
class Ready:
    """A peer that can run: its name with its version, a run, the outputs of a run.

    facts: what else there is to say of it.  steps: run, and the nanoseconds of parts.
    """

    name: str
    run: Callable[[], object]
    outputs: Callable[[], Sequence[Array]]
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    steps: Callable[[], list[tuple[str, int]]] = list[tuple[str, int]]


def open_job(function: str, job: Job) -> Ready:
    """Call "module:function" with a job."""
    module, _, name = function.partition(":")
    found: Callable[[Job], Ready] = getattr(importlib.import_module(module), name)
    return found(job)


def missing(name: str, package: str) -> Error:
    return Error(f"{name} is not installed", hint=f"pip install {package}")
