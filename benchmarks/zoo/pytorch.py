"""PyTorch's own runs of an exported module: eager, and compiled by Inductor."""

from __future__ import annotations

from typing import Any

from benchmarks.zoo.entry import Exported, Run


def eager(found: Exported, threads: int) -> Run:
    """Warm: what a first call does is done."""
    import torch

    torch.set_num_threads(threads)
    return warm(found.module, found.tensors)


def inductor(found: Exported, threads: int) -> Run:
    """Compiled as `torch.compile(module)` does it."""
    import torch

    torch.set_num_threads(threads)
    return warm(torch.compile(found.module), found.tensors)


def warm(module: Any, tensors: tuple[Any, ...]) -> Run:
    import torch

    def run() -> object:
        with torch.inference_mode():
            return module(*tensors)

    run()
    return run
