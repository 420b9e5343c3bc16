"""What a program says of itself: its loops, what became of the model, its times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nanoloom.cache import Cache
from nanoloom.errors import public
from nanoloom.fork_lock import wait_for_compiler
from nanoloom.model.source import Source
from nanoloom.options import CompileOptions
from nanoloom.report import Report
from nanoloom.runtime.variant import Variant

if TYPE_CHECKING:
    from nanoloom.explain.profile import Profile
    from nanoloom.explain.report import Explanation
    from nanoloom.nest.nest import LoopNest


class Explainable:
    """A program with a model, for this machine or another."""

    source: Source
    options: CompileOptions
    cache: Cache
    report: Report
    threads: int

    def static_shapes(self) -> dict[str, tuple[int, ...]]:
        raise NotImplementedError

    def checked(self, inputs: Mapping[str, object]) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def variant(self, arrays: Mapping[str, np.ndarray]) -> Variant:
        raise NotImplementedError

    @public
    def nests(self) -> dict[str, LoopNest]:
        """The loops of every kernel by its name, for the bound dimensions; they print.

        Raises InputError if dimensions are not bound.
        """
        with wait_for_compiler():
            from nanoloom.compiler import partition_model
        model = self.source.entry(self.static_shapes(), {})
        program = partition_model(model, self.options, self.report)
        return {name: kernel.nest for name, kernel in program.kernels.items()}

    @public
    def explain(
        self,
        inputs: Mapping[str, object] | None = None,
        *,
        layer: str = "",
        runs: int | None = None,
    ) -> Explanation:
        """What became of the model: kernels with their loops, schedules and assembly.

        inputs: to measure it with, for their shapes; without them nothing is measured,
        and dimensions are as bound.  layer: of these kernels only, by a layer's name, a
        kernel's, or a pattern.  runs: by default as many as fit into two seconds.
        Raises what a call raises, and Error for a layer that is not there.
        """
        with wait_for_compiler():
            from nanoloom.explain.explain import explain
        arrays = {} if inputs is None else self.checked(inputs)
        shapes = {name: array.shape for name, array in arrays.items()}
        return explain(
            self,
            shapes if inputs is not None else self.static_shapes(),
            arrays,
            layer=layer,
            runs=runs,
            measured=inputs is not None,
        )

    @public
    def profile(self, inputs: Mapping[str, object], runs: int | None = None) -> Profile:
        """The time of each layer and step, of runs with these inputs.

        runs: by default as many as fit into two seconds, five at least.  Raises what a
        call raises.
        """
        from nanoloom.explain.profile import profile

        return profile(self, inputs, runs)
