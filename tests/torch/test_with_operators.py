"""A seeded share of torch's samples of operators: none is wrong, few are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch  # pyright: ignore[reportMissingImports]

from nanoloom.frontend.torch.element_types import numpy_view
from tests.torch.operator_results import is_right
from tests.torch.operator_samples import samples
from tests.torch.operators import outcome

SEED = 11
LEAST = 0.95  # of the samples
# Of all samples of a type; `make operators` runs all of them.
SHARES = {"float32": 0.3, "int64": 0.05, "bfloat16": 0.004, "bool": 0.05}
COMPILED = 0.006


@pytest.mark.parametrize(
    ("kind", "share", "compiled"),
    [
        *((kind, share, False) for kind, share in SHARES.items()),
        ("float32", COMPILED, True),
    ],
)
def test_samples_of_operators(
    kind: str, share: float, compiled: bool, tmp_path: Path
) -> None:
    drawn = samples(SEED, share, getattr(torch, kind))
    found = [(x.name, outcome(x, tmp_path, compiled)) for x in drawn]
    wrong = [name for name, result in found if result == "wrong"]
    refused = [x for x in found if x[1] not in ("right", "wrong")]
    assert not wrong
    assert len(refused) <= (1 - LEAST) * len(found), refused
    assert len(found) > 5


def test_a_wrong_result_is_seen() -> None:
    sample = next(s for s in samples(SEED, 1.0) if s.name == "abs")
    right = [numpy_view(x, "") for x in sample.wanted]
    assert is_right(sample, right)
    assert not is_right(sample, [x + 0.5 for x in right])
    assert not is_right(sample, [x.astype(np.float64) for x in right])
