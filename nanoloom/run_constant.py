"""Models that run once, while another one is compiled: constants of that one.

- In: a model of known sizes and its input.
- Out: what it gives.  It is compiled for the least CPU of this machine's kind, so that
  a constant is the same whatever machine compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, TypeAlias

import onnx
import onnx_ir

from nanoloom.binary.assemble import Compiled
from nanoloom.binary.placed_weights import placed
from nanoloom.binary.shared import write_in_process
from nanoloom.cache import Cache, key
from nanoloom.fork_lock import between_compiler_calls
from nanoloom.graph.own_code import Arrays
from nanoloom.options import CompileOptions
from nanoloom.report import Report
from nanoloom.runtime.parameters import PARAMETERS, Weights, write_listed
from nanoloom.runtime.variant import LIBRARY, Variant
from nanoloom.target import TARGETS, Target
from nanoloom.target.cached_host import host

Compile: TypeAlias = Callable[[onnx_ir.Model, CompileOptions, Cache, Report], Compiled]


def run_once(compile_model: Compile, model: onnx.ModelProto, feeds: Arrays) -> Arrays:
    """What a model of known sizes gives, by the compiler's own stages.

    Raises nanoloom.errors.Error for what they refuse.
    """
    with between_compiler_calls():
        cache = cache_of_process()
        options = CompileOptions(baseline(host(cache)))
        given = onnx_ir.from_proto(model)
        made = placed(compile_model(given, options, cache, Report()))

        def write(folder: Path) -> None:
            made.write_small(folder / PARAMETERS)
            write_listed(folder, made.listed())
            triple = options.target.triple
            library = folder / LIBRARY
            write_in_process(
                made.objects, made.table, library, triple=triple, cache=cache
            )

        def weight(name: str, file: BinaryIO) -> None:
            made.write_large(name, file)

        content = model.SerializeToString(deterministic=True)
        name = key("constant", content, options.content)
        with cache.folder(name, write) as folder:
            return Variant(folder, 1, Weights(cache, weight))(feeds)


def baseline(target: Target) -> Target:
    """The first target of a kind: every CPU of it runs its code."""
    return next(x for x in TARGETS if x.triple == target.triple)


@lru_cache(maxsize=1)
def cache_of_process() -> Cache:
    return Cache.temporary()
