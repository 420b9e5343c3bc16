"""Products for tile registers: a target that runs here, numbers, and what is exact.

"loops" has definitions in place of tile instructions (tile_loops.py), for any machine;
"tiles" are the instructions, where there are any.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nanoloom.schedule.library import family
from nanoloom.target import Target, by_name
from nanoloom.target.host import host
from tests.linalg.bounds import dtype_of, sample
from tests.vector.checks import check, contracted, passes
from tests.vector.kernel_harness import (
    Array,
    Make,
    Shaped,
    backwards,
    program_of,
    run,
    stage_text,
)
from tests.vector.nanokernel.tile_loops import in_loops

TARGET = by_name("sapphirerapids")
NATIVE = host().matrix is not None and host().has("amx-bf16", "amx-int8")
VARIANTS = ("loops", "tiles") if NATIVE else ("loops",)
EACH = pytest.mark.parametrize("variant", VARIANTS)
TYPES = {"bf16": "bfloat16", "s8": "int8", "u8": "uint8"}
SIGNS = [("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8")]


def machine(variant: str, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A target with AMX whose code runs here, and takes it for any sum."""
    here = host()
    monkeypatch.setattr(family, "GROUPS_FOR_TILES", 0)
    if variant == "tiles":
        return replace(here, name="amx-for-all")
    in_loops(monkeypatch)
    return replace(
        TARGET,
        name="amx-in-loops",
        extensions=here.extensions | {"amx-tile", "amx-bf16", "amx-int8"},
        triple=here.triple,
        cpu=here.cpu,
        features=here.features,
        abi=here.abi,
        code_model=here.code_model,
    )


def numbers(seed: int, name: str, *shape: int) -> Array:
    """Seeded; of bytes all of the type's range, its ends among them."""
    if name == "bf16":
        return sample(seed, shape, TYPES[name])
    made = sample(seed, shape, TYPES[name], -128, 255)
    limits = np.iinfo(made.dtype)
    made.reshape(-1)[: made.size // 5] = limits.min
    made.reshape(-1)[-(made.size // 5) :] = limits.max
    return made


def sums_of(array: Array) -> np.dtype:
    return np.dtype(np.int32 if array.dtype.kind in "iu" else np.float32)


def product(equation: str, right: Array, *, packed: bool) -> Make:
    dtype = sums_of(right)
    if packed:
        return lambda b, x: b.einsum(equation, x, b.constant(right), dtype=dtype)
    return lambda b, x, w: b.einsum(equation, x, w, dtype=dtype)


def zeros(name: str, *shape: int) -> Array:
    return np.zeros(shape, dtype_of(TYPES[name]))


def script_of(make: Make, target: Target, *given: Shaped) -> str:
    """The Transform script of the only kernel, without the kernel itself."""
    text = stage_text(program_of(make, *given), "schedule", target)
    return text[: text.index("\n}\n") + 3]


def compare(
    equation: str, left: Array, right: Array, target: Target, *, packed: bool
) -> None:
    """The numbers, those of other columns not, and the family that made them."""
    make = product(equation, right, packed=packed)
    given = (left,) if packed else (left, right)
    assert 'family = "amx-' in script_of(make, target, *given)
    got = run(make, *given, target=target, order=backwards)
    exact, magnitude, terms = contracted(equation, left, right)
    if got.dtype.kind == "i":
        exact = exact.astype(np.int64).astype(np.int32)
    check(got, exact, terms + 1, magnitude)  # products are exact, sums round
    assert not passes(got, np.roll(exact, 1, -1), terms + 1, magnitude)
