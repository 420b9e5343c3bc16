"""Products of f32, two rows at once (fmmla), under qemu: right at every length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom.target import by_name
from tests.linalg.bounds import sample
from tests.runtime.weighted import built
from tests.vector.assembly import count, loop_with, touches_stack
from tests.vector.checks import check
from tests.vector.kernel_harness import program_of, stage_text

# An odd number of rows and of steps, a row alone, a sum of two steps, several images.
SHAPES = {
    "a": ((13, 71), (71, 53)),
    "b": ((1, 131), (131, 77)),
    "c": ((9, 2), (2, 45)),
    "d": ((3, 6, 37), (37, 19)),
}
F32 = "float32"
NAME = "aarch64+sve+f32mm"


def layers() -> str:
    def typed(shape: tuple[int, ...]) -> str:
        return f"float[{', '.join(map(str, shape))}]"

    given = [f"{typed(x)} {n}, {typed(w)} w{n}" for n, (x, w) in SHAPES.items()]
    made = [f"{typed((*x[:-1], w[-1]))} y{n}" for n, (x, w) in SHAPES.items()]
    body = "\n".join(f"y{n} = MatMul({n}, w{n})" for n in SHAPES)
    head = '<ir_version: 10, opset_import: ["": 21]>'
    return f"{head} all ({', '.join(given)}) => ({', '.join(made)}) {{ {body} }}"


def test_sums_at_every_length(tmp_path: Path) -> None:
    made = parser.parse_model(layers())
    given: dict[str, np.ndarray] = {}
    for seed, (name, (left, right)) in enumerate(SHAPES.items()):
        given |= {
            name: sample(seed, left, F32),
            f"w{name}": sample(seed + 9, right, F32),
        }
    program, path = built(made, given, NAME, tmp_path)
    inputs = [given[x.name] for x in program.inputs]
    kinds = {x.name: x.dtype for x in program.outputs}
    for bits in (128, 256, 1024):
        got = run_emulated(machine(f"{NAME}:sve={bits}"), path, inputs, kinds)
        for name, (left, _) in SHAPES.items():
            x, w = (given[n].astype(np.float64) for n in (name, f"w{name}"))
            # Products are rounded, and their sums.
            check(got[f"y{name}"], x @ w, 2 * left[-1] + 2, abs(x) @ abs(w))


@pytest.mark.parametrize(("name", "word"), [(NAME, "fmmla"), ("aarch64+sve", "fmla")])
def test_the_instruction(name: str, word: str) -> None:
    """Of two rows at once, without the others' and without the stack."""
    weight = sample(3, (128, 96), F32)
    program = program_of(
        lambda b, x: b.einsum("mk,kn->mn", x, b.constant(weight)),
        ((64, 128), "float32"),
    )
    text = stage_text(program, "asm", by_name(name))
    loop = loop_with(text, word)
    assert count(loop, word) >= 8 and not touches_stack(loop)
    assert not count(loop, "fmla" if word == "fmmla" else "fmmla")
