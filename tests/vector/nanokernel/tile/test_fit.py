"""Scripts that ask for a family which does not fit are refused in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.target import by_name
from tests.linalg.bounds import dtype_of
from tests.vector.kernel_harness import program_of, stage_text

TYPES = {"f32": "float32", "bf16": "bfloat16", "s8": "int8", "u8": "uint8"}
CASES = [  # target, operands, packed, a family in place of the chosen one, the answer
    ("x86-64-v3", "u8", "s8", True, "int8-dot",
     "x86-64-v3 has no instruction for family int8-dot of u8 by s8"),
    ("alderlake", "s8", "s8", False, "int8-dot",
     "alderlake has no instruction for family int8-dot of s8 by s8"),
    ("aarch64", "s8", "s8", False, "int8-pairs",
     "aarch64 has no instruction for family int8-pairs of s8 by s8"),
    ("x86-64-v3", "bf16", "bf16", True, "bf16-convert",
     "x86-64-v3 has no instruction for family bf16-convert of bf16 by bf16"),
    ("x86-64-v3", "bf16", "bf16", True, "bf16-dot",
     "x86-64-v3 has no instruction for family bf16-dot of bf16 by bf16"),
    ("alderlake", "s8", "s8", True, "int8-pairs",
     "the weight is not packed for family int8-pairs"),
    ("alderlake", "u8", "s8", True, "int8-lanes",
     "the weight is not packed for family int8-lanes"),
    ("x86-64-v3", "bf16", "bf16", True, "fma",
     "the weight is not packed for family fma"),
    ("x86-64-v3", "f32", "f32", True, "int8-pairs",
     "family int8-pairs does not sum f32 by f32 in f32"),
    ("x86-64-v3", "s8", "u8", True, "fma",
     "family fma does not sum s8 by u8 in i32"),
    ("x86-64-v3", "s8", "u8", True, "int7",
     "there is no family 'int7' of nanokernels, only fma, "),
]  # fmt: skip


@pytest.mark.parametrize("target, left, right, packed, family, said", CASES)
def test_refusals(
    target: str, left: str, right: str, packed: bool, family: str, said: str
) -> None:
    weight = np.zeros((35, 100), dtype_of(TYPES[right]))
    sums = np.dtype(np.int32 if left[1:] == "8" else np.float32)

    def make(b: Any, x: Any, *others: Any) -> Any:
        w = b.constant(weight) if packed else others[0]
        return b.einsum("mk,kn->mn", x, w, dtype=sums)

    given = [np.zeros((33, 35), dtype_of(TYPES[left]))]
    given += [] if packed else [weight]
    program = program_of(make, *given)
    text = stage_text(program, "schedule", by_name(target))
    own = text[: text.index("\n}\n") + 3]
    chosen = own.split('family = "')[1].split('"')[0]
    assert chosen != family
    script = own.replace(f'"{chosen}"', f'"{family}"')
    with pytest.raises(Error) as found:
        stage_text(program, "llvm", by_name(target), script=script)
    assert said in str(found.value)
    assert "\n" not in str(found.value)
