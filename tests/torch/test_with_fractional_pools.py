"""Pools at drawn places: of the samples that are given, the elements torch takes."""

from __future__ import annotations

from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra

from nanoloom.frontend.torch.exported import import_exported
from tests.torch.operator_results import by_peer

ATEN: Any = torch.ops.aten


class Pool(torch.nn.Module):
    def __init__(self, kernel: list[int], wanted: list[int]) -> None:
        super().__init__()
        self.kernel, self.wanted = kernel, wanted

    def forward(self, x: torch.Tensor, samples: torch.Tensor) -> Any:
        pools = {2: ATEN.fractional_max_pool2d, 3: ATEN.fractional_max_pool3d}
        return pools[len(self.kernel)](x, self.kernel, self.wanted, samples)


@pytest.mark.parametrize(
    ("kernel", "wanted", "shape"),
    [
        ([2, 3], [4, 5], (2, 3, 9, 11)),
        ([3, 2], [1, 6], (3, 8, 7)),
        ([2, 1, 3], [3, 4, 2], (2, 2, 7, 6, 8)),
    ],
)
def test_elements_and_their_places(
    kernel: list[int], wanted: list[int], shape: tuple[int, ...]
) -> None:
    torch.manual_seed(len(shape))
    rank = len(kernel)
    images = shape[0] if len(shape) == rank + 2 else 1
    given = torch.randn(shape), torch.rand(images, shape[-rank - 1], rank)
    given[0].view(-1)[::7] = 0.5  # equal elements: the first of them is taken
    module = Pool(kernel, wanted)
    imported = import_exported(torch.export.export(module, given), {})
    arrays = {n: given[int(i)].numpy() for n, i in imported.inputs.items()}
    made = by_peer(imported.model, arrays)
    for (_, what), theirs in zip(imported.results, module(*given), strict=True):
        ours = imported.result(str(what), torch.from_numpy(made[str(what)]))
        assert torch.equal(ours, theirs)


def test_a_rule_may_change_its_lists() -> None:
    """torch's own rule of this operator does so with its indices."""
    x, at = torch.arange(12.0).view(3, 4), torch.tensor([0, 5, 2])

    class Masked(torch.nn.Module):
        def forward(self, x: torch.Tensor, at: torch.Tensor) -> Any:
            mask = (at < 3).unsqueeze(-1)
            return ATEN._unsafe_masked_index(x, mask, [at, None], 7.0)

    imported = import_exported(torch.export.export(Masked(), (x, at)), {})
    given = {"x": x.numpy(), "at": at.numpy()}
    (made,) = by_peer(imported.model, given).values()
    wanted = torch.where((at < 3)[:, None], x[at.clamp(max=2)], 7.0)
    assert torch.equal(torch.from_numpy(made), wanted)
