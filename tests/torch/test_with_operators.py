"""A seeded share of torch's samples of operators: none is wrong, few are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # pyright: ignore[reportMissingImports]

import nanoloom
from nanoloom.errors import Unsupported
from nanoloom.frontend.torch.element_types import numpy_view
from nanoloom.torch.graph_program import import_graph
from tests.torch.operator_samples import Sample, samples

SEED, SHARE = 11, 0.04
LEAST = 0.95  # of the samples
# Sums of at most a few hundred products of numbers up to 9, and functions of error
# below 4 units in the last place.
RELATIVE, ABSOLUTE = 64 * 2.0**-24, 512 * 81 * 2.0**-24 / 64


def computed(sample: Sample, cache: Path) -> list[Any]:
    imported = import_graph(sample.graph.graph, sample.graph, {})
    program = nanoloom.compile(imported.model, cache=cache, threads=1)
    arrays = {
        name: numpy_view(sample.tensors[int(place)], name)
        for name, place in imported.inputs.items()
    }
    made = program(arrays)
    return [
        what if kind == "constant"
        else numpy_view(sample.tensors[what], "") if kind == "argument" else made[what]
        for kind, what in imported.results
    ]  # fmt: skip


def is_right(sample: Sample, found: list[Any]) -> bool:
    """Shapes, types and numbers; the places of equal elements may be any of theirs."""
    for ours, wanted in zip(found, sample.wanted, strict=True):
        if not isinstance(wanted, torch.Tensor):
            if ours != wanted:
                return False
            continue
        theirs = numpy_view(wanted, "")
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return False
        if theirs.dtype.kind != "f":
            if not np.array_equal(ours, theirs):
                return False
            continue
        a, b = (x.astype(np.float64) for x in (ours, theirs))
        if not np.allclose(a, b, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True):
            return False
    return True


def test_samples_of_operators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, refused, wrong = 0, list[str](), list[str]()
    for sample in samples(SEED, SHARE):
        try:
            found = computed(sample, tmp_path)
        except Unsupported as error:
            refused.append(f"{sample.name}: {error}")
            continue
        if is_right(sample, found):
            right += 1
        else:
            wrong.append(sample.name)
    count = right + len(refused) + len(wrong)
    with capsys.disabled():
        print(f"\n{right} of {count} samples right, {len(refused)} refused")
    assert not wrong
    assert right >= LEAST * count, refused


def test_a_wrong_result_is_seen() -> None:
    sample = next(s for s in samples(SEED, 1.0) if s.name == "abs")
    right = [numpy_view(x, "") for x in sample.wanted]
    assert is_right(sample, right)
    assert not is_right(sample, [x + 0.5 for x in right])
    assert not is_right(sample, [x.astype(np.float64) for x in right])
