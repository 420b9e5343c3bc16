"""A small binary network in PyTorch: signs for weights and activations.

The first convolution and the last product stay in floats, as usual.  Gradients go
through a sign where its input is between -1 and 1 (Hubara and others, 2016).
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from examples.binary.shapes import DIRECTIONS, SIZE, Kinds, Pictures

CHANNELS = 32
STEPS, BATCH = 120, 32


class SignOf(torch.autograd.Function):
    """1 where a number is at least 0, else -1; the gradient of Hardtanh."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors  # type: ignore[attr-defined] - torch's stubs lack it
        return grad * (x.abs() <= 1)


class BinaryConv(nn.Conv2d):
    """Signs of the input by signs of the weights, which have one magnitude a filter."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        size = self.weight.abs().mean((1, 2, 3), keepdim=True).detach()
        weight = SignOf.apply(self.weight) * size
        x = SignOf.apply(input) if self.training else torch.where(input >= 0, 1.0, -1.0)
        return nn.functional.conv2d(x, weight, None, self.stride, self.padding)

    def fixed(self) -> nn.Module:
        """The same for inference: its weights are what they stand for."""
        size = self.weight.abs().mean((1, 2, 3), keepdim=True)
        made = Fixed(self.in_channels, self.out_channels, 3, padding=1, bias=False)
        made.weight = nn.Parameter(torch.where(self.weight >= 0, size, -size))
        return made


class Fixed(nn.Conv2d):
    """A convolution of signs."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.where(input >= 0, 1.0, -1.0))


def network() -> nn.Sequential:
    """Pictures to a score for each kind."""

    def block() -> list[nn.Module]:
        conv = BinaryConv(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        return [conv, nn.BatchNorm2d(CHANNELS)]

    first = nn.Conv2d(1, CHANNELS, 3, padding=1)
    last = nn.Linear(CHANNELS * (SIZE // 4) ** 2, len(DIRECTIONS))
    return nn.Sequential(
        *(first, nn.BatchNorm2d(CHANNELS), nn.MaxPool2d(2)),
        *(*block(), *block(), nn.MaxPool2d(2)),
        *(*block(), nn.Flatten(), last),
    )


def train(model: nn.Sequential, pictures: Pictures, kinds: Kinds) -> None:
    """Some steps of Adam on random batches."""
    x, y = torch.from_numpy(pictures), torch.from_numpy(kinds)
    adam = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(STEPS):
        some = torch.randint(len(x), (BATCH,))
        loss = nn.functional.cross_entropy(model(x[some]), y[some])
        adam.zero_grad()
        loss.backward()
        adam.step()
    model.eval()


def for_inference(model: nn.Sequential) -> nn.Sequential:
    """The network with its binary weights as constants."""
    parts = (m.fixed() if isinstance(m, BinaryConv) else m for m in model)
    return nn.Sequential(*parts).eval()


def export(model: nn.Sequential, path: Path, count: int) -> None:
    """As ONNX, for so many pictures at once."""
    example = torch.zeros(count, 1, SIZE, SIZE)
    names = {"input_names": ["pictures"], "output_names": ["scores"]}
    torch.onnx.export(model, (example,), str(path), dynamo=False, **names)
