"""Small models through the whole compiler, at one and at two threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

import nanoloom
from tests.linalg.single import Arrays, model_of
from tests.vector.kernel_harness import shared_cache


def compiled(
    model: onnx.ModelProto, feeds: dict[str, np.ndarray], **options: Any
) -> list[np.ndarray]:
    """The outputs in order, whose bits may not depend on the number of threads."""
    made: list[list[np.ndarray]] = []
    for threads in (1, 2):
        program = nanoloom.compile(
            model, threads=threads, cache=shared_cache(), **options
        )
        outputs = program(feeds)
        again = program(feeds)  # it finds its memory as the first run left it
        names = [x.name for x in model.graph.output]
        made.append([outputs[n] for n in names])
        for name in names:
            np.testing.assert_array_equal(outputs[name], again[name])
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)
    return made[0]


def run_compiled(
    op: str,
    inputs: Arrays,
    /,
    *,
    constants: tuple[int, ...] = (),
    outputs: int = 1,
    **attributes: Any,
) -> list[np.ndarray]:
    """As `run_node`, through all stages."""
    given = {k: v for k, v in attributes.items() if v is not None}
    return compiled(*model_of(op, inputs, given, constants=constants, outputs=outputs))
