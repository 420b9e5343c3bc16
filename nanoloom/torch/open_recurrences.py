"""Recurrences whose number of steps stays open while torch exports a module.

torch knows the shape of what one gives by computing it step by step, which fixes the
number of steps to that of the example.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch._decomp import decomposition_table

KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


@contextmanager
def open_recurrences() -> Generator[None]:
    """Recurrences keep an open number of steps for as long as this lasts."""
    with ExitStack() as stack:
        for kind in KINDS:
            op: Any = getattr(torch.ops.aten, kind).input
            rule = of_any_length(op.py_kernels[COMPOSITE])
            stack.enter_context(patch.dict(op.py_kernels, {COMPOSITE: rule}))
            stack.enter_context(patch.dict(decomposition_table, {op: rule}))
        yield


def of_any_length(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of one step, and as many of what it gives as there are steps."""

    def made(given: Any, *rest: Any) -> Any:
        batch_first = bool(rest[-1])
        steps = given.shape[int(batch_first)]
        if isinstance(steps, int):
            return rule(given, *rest)
        step, *states = rule(given.narrow(int(batch_first), 0, 1), *rest)
        if batch_first:
            step = step.transpose(0, 1)
        every = step.new_empty((steps, *step.shape[1:]))
        return (every.transpose(0, 1) if batch_first else every, *states)

    return made
