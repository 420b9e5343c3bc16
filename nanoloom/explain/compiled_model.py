"""A model as kernels, compiled, with what is known of its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import onnx_ir

from nanoloom.binary.kernel import CompiledKernel
from nanoloom.cache import Cache
from nanoloom.compiler import (
    Model,
    compile_shared_k,
    partition_model,
    require_schedules,
    searched,
)
from nanoloom.explain.float_layers import float_layers_in, is_quantized
from nanoloom.kernels.program import Program
from nanoloom.model.binding import Binding, deciding
from nanoloom.model.source import Source
from nanoloom.options import CompileOptions
from nanoloom.report import Report

Arrays = Mapping[str, np.ndarray]
Shapes = Mapping[str, tuple[int, ...]]


class Subject(Protocol):
    """A program that can be explained."""

    source: Source
    options: CompileOptions
    cache: Cache
    report: Report
    threads: int


@dataclass(frozen=True)
class CompiledModel:
    """A model as kernels, for some shapes of its inputs.

    nodes: names and operators, in the model's order.  floats: nodes of a quantized
    network that are computed in floats, and why.  whole: with a kernel for each length
    of a sum; program: as it is compiled, by these options; compiled: its kernels.
    """

    binding: Binding
    options: CompileOptions
    nodes: tuple[tuple[str, str], ...]
    floats: Mapping[str, str]
    whole: Program
    program: Program
    compiled: Mapping[str, CompiledKernel]

    def steps(self) -> Iterator[str]:
        """The kernel of each step of the compiled program."""
        for call in self.program.calls:
            for tasks in self.compiled[call.kernel].tasks:
                if tasks:
                    yield call.kernel


def compiled_model(subject: Subject, shapes: Shapes, arrays: Arrays) -> CompiledModel:
    """The model as kernels, which are compiled if the cache has them not.

    arrays: of the inputs; of those whose values decide about shapes at least.
    """
    source, options, cache = subject.source, subject.options, subject.cache
    report = subject.report
    require_schedules(options)
    cuts: list[tuple[Arrays, tuple[tuple[str, str], ...], Mapping[str, str]]] = []

    def made(values: Arrays) -> Program:
        model = source.entry(shapes, values)
        nodes, quantized = nodes_of(model)
        program = partition_model(model, options, report)
        cuts.append((values, nodes, floats_of(model) if quantized else {}))
        return program

    known = source.value_inputs(cache, shapes)
    whole, _ = deciding(arrays, [name for name in known if name in arrays], made)
    values, nodes, floats = cuts[-1]
    options = searched(whole, options, cache, report)
    program, compiled = compile_shared_k(whole, options, cache, report)
    binding = Binding(source, options, cache, report, shapes, dict(values))
    return CompiledModel(binding, options, nodes, floats, whole, program, compiled)


def nodes_of(model: Model) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Names and operators, and whether it is a quantized network; none of linalg."""
    if not isinstance(model, onnx_ir.Model):
        return (), False
    nodes = tuple((node.name or "", node.op_type) for node in model.graph)
    return nodes, is_quantized(model)


def floats_of(optimized: Model) -> Mapping[str, str]:
    assert isinstance(optimized, onnx_ir.Model), "it has quantizers, and so a graph"
    return {each.node: each.reason for each in float_layers_in(optimized)}
