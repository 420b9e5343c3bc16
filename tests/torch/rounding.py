"""How far results may be from those of the same module in float64."""

from __future__ import annotations

import copy
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

FACTOR = 32  # of the spread: sums of up to 48 products, and two layers of them
SEEDS = (1, 2)


def leaves(made: Any) -> list[Any]:
    return list(torch.utils._pytree.tree_leaves(made))


def require_close(module: Any, args: tuple[Any, ...], got: Any, eps: float) -> None:
    """Every result within FACTOR times what it moves by when numbers are rounded.

    eps: relative error of a number.  The module itself stays as it is.
    """
    wanted = leaves(in_doubles(module, args, 0.0, 0))
    others = [leaves(in_doubles(module, args, eps, seed)) for seed in SEEDS]
    found = leaves(got)
    assert len(found) == len(wanted)
    for place, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        if not isinstance(theirs, torch.Tensor):
            assert ours == theirs
            continue
        assert ours.shape == theirs.shape
        if not theirs.is_floating_point():
            assert torch.equal(ours, theirs)
            continue
        spread = max((other[place] - theirs).abs().max() for other in others)
        size = theirs.abs().max()
        bound = FACTOR * spread + 4 * eps * size
        assert bound < size, "zeros would pass"
        assert (ours.double() - theirs).abs().max() <= bound


def in_doubles(module: Any, args: tuple[Any, ...], eps: float, seed: int) -> Any:
    """What the module gives in float64, its numbers disturbed by up to eps."""
    random = torch.Generator().manual_seed(seed)

    def moved(x: Any) -> Any:
        if not (isinstance(x, torch.Tensor) and x.is_floating_point()):
            return x.clone() if isinstance(x, torch.Tensor) else x
        noise = torch.rand(x.shape, generator=random, dtype=torch.float64)
        return x.double() * (1 + eps * (2 * noise - 1))

    wide = copy.deepcopy(module).double()
    with torch.no_grad():
        for tensor in (*wide.parameters(), *wide.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(moved(tensor))
        return wide(*[moved(x) for x in args])
