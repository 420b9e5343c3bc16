"""Draw convolutions from the networks of timm: benchmarks/layers.json.

    python -m benchmarks.draw_layers [--count 100] [--seed 0]

Networks are drawn, and run on tensors without numbers to see the sizes.  Kinds take
turns, so that rare ones are among them.
"""

from __future__ import annotations

import argparse
import json
import random
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from benchmarks.layers import DRAWN, Layer

NETWORKS = 400  # that are drawn


def architectures() -> list[str]:
    """The names of all networks, without their variants of other weights."""
    import timm

    return sorted(timm.list_models(pretrained=False))


def layers_of(name: str) -> Iterator[Layer]:
    """The distinct 2-D convolutions of a network; none if it cannot be run."""
    import timm
    import torch

    found: list[Layer] = []

    def seen(module: Any, inputs: Any, output: Any) -> None:
        del output
        (image,) = inputs
        padding = module.padding
        if image.dim() == 4 and not isinstance(padding, str):
            _, channels, high, wide = image.shape
            made = Layer(
                name, channels, high, wide, module.out_channels,
                tuple(module.kernel_size), tuple(module.stride), tuple(padding),
                tuple(module.dilation), module.groups,
            )  # fmt: skip
            found.append(made)

    with torch.device("meta"), torch.no_grad():
        model = timm.create_model(name).eval()
        size = model.default_cfg.get("input_size", (3, 224, 224))
        for module in model.modules():
            if type(module) is torch.nn.Conv2d:
                module.register_forward_hook(seen)
        model(torch.empty(1, *size))
    yield from dict.fromkeys(found)


def drawn(count: int, seed: int) -> list[Layer]:
    """So many layers, distinct but for their networks, all kinds in turns."""
    chance = random.Random(seed)
    names = chance.sample(architectures(), NETWORKS)
    kinds: dict[str, dict[tuple[object, ...], Layer]] = {}
    for name in names:
        try:
            for layer in layers_of(name):
                kinds.setdefault(layer.kind, {}).setdefault(layer.sizes, layer)
        except (RuntimeError, TypeError, ValueError) as error:  # it needs more inputs
            warnings.warn(f"{name}: {error}", stacklevel=1)
    piles = {kind: list(found.values()) for kind, found in sorted(kinds.items())}
    for pile in piles.values():
        chance.shuffle(pile)
    chosen: list[Layer] = []
    while len(chosen) < count and any(piles.values()):
        for pile in piles.values():
            if pile and len(chosen) < count:
                chosen.append(pile.pop())
    return sorted(chosen, key=lambda layer: (layer.kind, layer.sizes))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.draw_layers")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    layers = drawn(given.count, given.seed)
    lines = ",\n".join(json.dumps(asdict(layer)) for layer in layers)
    DRAWN.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
