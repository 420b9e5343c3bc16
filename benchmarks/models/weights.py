"""Random weights that keep a network's numbers near 1 from input to output.

Biases and norm parameters are random too: a compiler that drops one must be noticed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

NORMS = (nn.LayerNorm, nn.BatchNorm2d)
WEIGHTED = (nn.Linear, nn.Conv2d, nn.ConvTranspose2d, nn.GRU, Conv1D)
EMBEDDING = 0.1  # a tied output layer then gives logits of a few units
BIAS = 0.1


def randomize(module: nn.Module, seed: int, gain: float) -> None:
    """Redraw every parameter in place from `seed`.

    A weight gets the variance `gain` / inputs: 2 before a ReLU, 1 elsewhere.
    """
    generator = torch.Generator().manual_seed(seed)
    tied: set[int] = set()
    for part in module.modules():
        for name, parameter in part.named_parameters(recurse=False):
            if id(parameter) in tied:
                continue
            tied.add(id(parameter))
            with torch.no_grad():
                draw(part, name, parameter, gain, generator)


def draw(
    part: nn.Module,
    name: str,
    parameter: nn.Parameter,
    gain: float,
    generator: torch.Generator,
) -> None:
    """Fill one parameter of `part`."""
    if isinstance(part, NORMS) and name == "weight":
        parameter.uniform_(0.5, 1.5, generator=generator)
    elif isinstance(part, nn.Embedding):
        parameter.normal_(0, EMBEDDING, generator=generator)
    elif parameter.ndim < 2 or not isinstance(part, WEIGHTED):
        parameter.normal_(0, BIAS, generator=generator)
    else:
        parameter.normal_(
            0, (gain / inputs(part, parameter)) ** 0.5, generator=generator
        )


def inputs(part: nn.Module, weight: torch.Tensor) -> int:
    """How many products are added up for one output of `part`."""
    if isinstance(part, Conv1D):  # stored [inputs, outputs], unlike Linear
        return weight.shape[0]
    if isinstance(
        part, nn.ConvTranspose2d
    ):  # kernel = stride: each output sees one tap
        return weight.shape[0]
    return weight[0].numel()


def calibrate(module: nn.Module, batch: Sequence[torch.Tensor]) -> None:
    """Set the running statistics of batch norms to those of `batch`."""
    norms = [part for part in module.modules() if isinstance(part, nn.BatchNorm2d)]
    if not norms:
        return
    for norm in norms:
        norm.momentum = None  # the plain mean over batches
        norm.reset_running_stats()
    module.train()
    with torch.no_grad():
        module(*batch)
    module.eval()
