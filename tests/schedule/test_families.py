"""Which families of nanokernels a target has: asked where they are chosen and made."""

from __future__ import annotations

import pytest

from nanoloom.schedule.families import FAMILIES, has_family
from nanoloom.target import by_name

# target, operands, whether the right one is packed; what it has beside plain lanes
KNOWN = [
    ("x86-64-v2", "s8", "s8", True, {"int8-pairs"}),
    ("x86-64-v3", "u8", "s8", True, {"int8-pairs", "int8-inner"}),
    ("icelake-server", "u8", "s8", False, {"int8-pairs", "int8-dot"}),
    ("icelake-server", "s8", "s8", True, {"int8-pairs", "int8-dot"}),
    ("icelake-server", "s8", "s8", False, {"int8-pairs"}),  # no sums of columns
    ("sapphirerapids", "s8", "u8", True, {"int8-pairs", "int8-dot", "amx-int8"}),
    ("sierraforest", "s8", "s8", False, {"int8-pairs", "int8-dot"}),
    ("x86-64-v2", "s16", "s16", True, {"int16-pairs"}),
    ("icelake-server", "s16", "s16", True, {"int16-pairs"}),
    ("aarch64", "s16", "s16", True, set()),
    ("aarch64", "s8", "s8", False, set()),
    ("neoverse-v1", "s8", "s8", False, {"int8-dot"}),
    ("x86-64-v4", "bf16", "bf16", True, set()),
    ("znver4", "bf16", "bf16", False, {"bf16-dot"}),
    ("sapphirerapids", "bf16", "bf16", True, {"bf16-dot", "amx-bf16"}),
    ("sierraforest", "bf16", "bf16", True, {"bf16-convert"}),
]  # fmt: skip
ANYWHERE = {"fma", "bf16-halves", "int8-lanes"}


@pytest.mark.parametrize(("target", "left", "right", "packed", "there"), KNOWN)
def test_what_targets_have(
    target: str, left: str, right: str, packed: bool, there: set[str]
) -> None:
    found = {
        name
        for name, family in FAMILIES.items()
        if (left, right) in [pair[:2] for pair in family.elements]
        and has_family(by_name(target), family, left, right, packed)
    }
    assert found - ANYWHERE == there
    assert found & ANYWHERE or left == "s16"
