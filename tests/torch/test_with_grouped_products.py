"""Rows of groups times a matrix for each group, by transformers' own operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnx_ir
import pytest
import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]

import nanoloom
from tests.torch.test_with_control_flow import same

SCHEMA = "(Tensor input, Tensor weight, Tensor offs) -> Tensor"


def products(x: Any, weight: Any, ends: Any) -> Any:
    """As transformers defines it."""
    made, start = torch.zeros(x.size(0), weight.size(2), dtype=x.dtype), 0
    for matrix, end in zip(weight, ends.tolist(), strict=True):
        made[start:end] = x[start:end] @ matrix
        start = end
    return made


@pytest.fixture(scope="module", autouse=True)
def operator() -> None:
    name = "transformers::grouped_mm_fallback"
    if not hasattr(torch.ops.transformers, "grouped_mm_fallback"):
        torch.library.custom_op(name, products, mutates_args=(), schema=SCHEMA)
        torch.library.register_fake(
            name, lambda x, weight, ends: x.new_empty(x.size(0), weight.size(2))
        )


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        whole = torch.arange(5 * 12 * 7).reshape(5, 12, 7) % 11 - 5
        self.weight = nn.Parameter(whole.float())

    def forward(self, x: Any, ends: Any) -> Any:
        return torch.ops.transformers.grouped_mm_fallback(x, self.weight, ends)


@pytest.mark.parametrize("is_open", [False, True])
def test_groups_of_any_size(tmp_path: Path, is_open: bool) -> None:
    """None of some, and rows behind the last: whole numbers, so all is exact."""
    module = Experts().eval()
    rows = {0: torch.export.Dim("rows", max=64)} if is_open else None
    generator = torch.Generator().manual_seed(1)
    counts, program = (23, 40) if is_open else (23,), None
    for count in counts:
        x = torch.randint(-9, 9, (count, 12), generator=generator).float()
        for ends in ([4, 4, 10, 20, 20], [0, 0, 0, 0, 23], [23] * 5, [0] * 5):
            given = x, torch.tensor(ends, dtype=torch.int32)
            if program is None:
                exported = torch.export.export(
                    module, given, dynamic_shapes={"x": rows, "ends": None}
                )
                program = nanoloom.compile(exported, cache=tmp_path, threads=1)
            assert same(program(*given), module(*given))
            assert ends == [0] * 5 or not same(program(*given), 0 * module(*given))


def test_others_read_the_graph(tmp_path: Path) -> None:
    """Its types are what ONNX infers, bodies too: ONNX Runtime reads it for verify."""
    given = torch.ones(9, 12), torch.tensor([2, 2, 4, 5, 9], dtype=torch.int32)
    path = tmp_path / "experts.pt2"
    torch.export.save(torch.export.export(Experts().eval(), given), path)
    program = nanoloom.compile(path)
    shapes = {x.name: tuple(map(int, x.shape)) for x in program.inputs}
    proto = onnx_ir.to_proto(program.source.bound(shapes, {}))
    onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
