"""What a call of a tiny module costs beside a backend that has its results ready."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from nanoloom_papers.reproduce.tables import Sheet

ROUNDS, CALLS = 9, 300  # in turns, and in each of them
Calls = tuple[Callable[..., Any], Sequence[tuple[Any, ...]]]  # with one after the other


def overhead() -> Sheet:
    """One thread; Dynamo's guards are part of both, and of no program."""
    import torch
    from torch import nn

    import nanoloom
    from nanoloom.torch.backend import nanoloom as backend

    torch.set_num_threads(1)
    rows = [torch.randn(n, 4) for n in (2, 3, 5, 7)]
    deep = nn.Sequential(*[nn.Linear(4, 4) for _ in range(30)]).eval()
    cases: dict[str, tuple[nn.Module, list[Any]]] = {
        "one layer": (nn.Linear(4, 4).eval(), rows[:1]),
        "30 layers": (deep, rows[:1]),
        "four sizes in turns": (nn.Linear(4, 4).eval(), rows),
    }
    lines: list[tuple[str, ...]] = []
    with torch.no_grad():
        for name, (module, inputs) in cases.items():
            shapes = ({0: torch.export.Dim.DYNAMIC},) if inputs[1:] else None
            given = {"dynamic_shapes": shapes, "threads": 1}
            program = nanoloom.compile(module, (inputs[0],), **given)
            dynamic, options = bool(inputs[1:]), {"threads": 1}
            fast = torch.compile(
                module, backend=backend, options=options, dynamic=dynamic
            )
            args = [(x,) for x in inputs]
            ours = seconds([(fast, args), (program, args)])
            torch._dynamo.reset()
            made = torch.compile(module, backend=ready, dynamic=dynamic)
            (least,) = seconds([(made, args)])
            times = (ours[0], least, ours[0] - least, ours[1])
            lines.append((name, *[f"{1e6 * t:.1f}" for t in times]))
            torch._dynamo.reset()
    heads = ("module", ">torch.compile us", ">results ready us", ">more us",
             ">program(x) us")  # fmt: skip
    return Sheet("calls from PyTorch", heads, tuple(lines))


def ready(graph: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
    """A backend whose results are there before it is called."""
    import torch

    del inputs
    (output,) = (n for n in graph.graph.nodes if n.op == "output")
    made = (torch.zeros(2, 4),) * len(output.args[0])
    return lambda *_: made


def seconds(every: Sequence[Calls]) -> list[float]:
    """Of one call, by the median of rounds in turns."""
    for call, inputs in every:
        for args in [*inputs, *inputs]:
            call(*args)
    times: list[list[float]] = [[] for _ in every]
    for _ in range(ROUNDS):
        for found, (call, inputs) in zip(times, every, strict=True):
            begun = time.perf_counter()
            for _ in range(CALLS):
                for args in inputs:
                    call(*args)
            found.append((time.perf_counter() - begun) / CALLS / len(inputs))
    return [statistics.median(found) for found in times]
