"""f16, bf16 and bytes in vectors of any width under qemu: right at every length."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import parser

from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom_papers.reproduce.instruction_counts import of_one_run
from tests.runtime.test_emulated_movement import executable

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HEAD = '<ir_version: 10, opset_import: ["": 21]>'
# Sizes that no vector divides.  Of each kind of numbers every one in f16, and in bf16.
MODEL = f"""{HEAD}
narrow (float[257, 37] x, float16[2047, 31] h, bfloat16[2047, 31] b,
        float16[3, 53] p, float16[3, 53] q, bfloat16[3, 53] r, bfloat16[3, 53] s,
        uint8[5, 71] bytes, float16[9, 45] rows, int64[17] places)
 => (float16[257, 37] to_h, bfloat16[257, 37] to_b, float[2047, 31] from_h,
     float[2047, 31] from_b, float16[3, 53] sum_h, bfloat16[3, 53] sum_b,
     uint8[5, 71] looked_up, int64[9, 1] most, int64[1, 45] least,
     float16[45, 9] turned, float16[9, 17] found, float16[9, 1] top)
{{
    to_h = Cast<to = 10>(x)
    to_b = Cast<to = 16>(x)
    from_h = Cast<to = 1>(h)
    from_b = Cast<to = 1>(b)
    sum_h = Add(p, q)
    sum_b = Mul(r, s)
    scale = Constant<value = float {{0.05}}>()
    zero = Constant<value = uint8 {{128}}>()
    wide = DequantizeLinear(bytes, scale, zero)
    gate = Sigmoid(wide)
    gated = Mul(wide, gate)
    looked_up = QuantizeLinear(gated, scale, zero)
    numbers = Cast<to = 1>(rows)
    most = ArgMax<axis = 1>(numbers)
    least = ArgMin<axis = 0, select_last_index = 1>(numbers)
    turned = Transpose<perm = [1, 0]>(rows)
    found = Gather<axis = 1>(rows, places)
    one = Constant<value_ints = [1]>()
    top = ReduceMax(rows, one)
}}
"""
LENGTHS = {
    "riscv64+v": (":vlen=128", ":vlen=256", ":vlen=512", ":vlen=1024"),
    "aarch64+sve": (":sve=128", ":sve=256", ":sve=512", ":sve=2048"),
    "riscv64": ("",),
    "neoverse-v1": ("",),  # has conversions from f32 to bf16
}


def floats() -> np.ndarray:
    """Any bits; halves of a last digit of f16 and bf16, and what lies beside them,
    in all of f16's exponents; the largest, the smallest, infinities and NaN."""
    random = np.random.default_rng(8)
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = every.view(np.uint32)[np.isfinite(every)][::29]
    ties = np.concatenate([ties + half for half in (0, 0xFFF, 0x1000, 0x1001)])
    near = np.concatenate(
        [ties.view(np.uint32)[:4000], np.array([0x477FEFFF], np.uint32)]
    )
    special = np.array([np.inf, -np.inf, np.nan, 65519.9, 65520, 2.0**-25, 3e-8, -0.0])
    bits = random.integers(0, 1 << 32, 257 * 37, np.uint32)
    bits[: len(near)] = near
    made = bits.view(np.float32)
    made[-len(special) :] = special
    return made.reshape(257, 37)


def inputs() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    made = {"x": floats()}
    bits = np.resize(np.arange(1 << 16, dtype=np.uint16), 2047 * 31)
    made["h"] = bits.view(np.float16).reshape(2047, 31)
    made["b"] = bits.view(BFLOAT16).reshape(2047, 31)
    for name, kind in zip("pqrs", (np.float16,) * 2 + (BFLOAT16,) * 2, strict=True):
        made[name] = random.standard_normal((3, 53)).astype(kind)
    made["bytes"] = random.permutation(355).astype(np.uint8).reshape(5, 71)
    # Few numbers: the largest is there more than once.
    rows = random.integers(-9, 9, (9, 45)) + np.arange(9)[:, None] % 3
    made["rows"] = rows.astype(np.float16)
    made["places"] = random.integers(-45, 45, 17)
    return made


def table() -> np.ndarray:
    """What becomes of the bytes 0 to 255, step by step in f32."""
    wide = (np.arange(256, dtype=np.float32) - 128) * np.float32(0.05)
    gated = wide * (1 / (1 + np.exp(-wide, dtype=np.float32)))
    return (np.round(gated / np.float32(0.05)) + 128).clip(0, 255).astype(np.uint8)


def expected(v: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    wide = {name: v[name].astype(np.float32) for name in "pqrs"}
    rows = v["rows"]
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = v["x"].astype(np.float16), v["x"].astype(BFLOAT16)
    return {
        "to_h": narrow[0],
        "to_b": narrow[1],
        "from_h": v["h"].astype(np.float32),
        "from_b": v["b"].astype(np.float32),
        "sum_h": (wide["p"] + wide["q"]).astype(np.float16),
        "sum_b": (wide["r"] * wide["s"]).astype(BFLOAT16),
        "looked_up": table()[v["bytes"]],
        "most": rows.argmax(1)[:, None],
        "least": 8 - rows[::-1].argmin(0)[None],
        "turned": rows.T,
        "found": rows[:, v["places"]],
        "top": rows.max(1)[:, None],
    }


def same(got: np.ndarray, want: np.ndarray) -> bool:
    """Bit for bit, any NaN for a NaN."""
    if want.dtype.kind in "iu":
        return bool((got == want).all())
    bits = f"u{want.dtype.itemsize}"
    number = ~np.isnan(want)
    equal = np.ascontiguousarray(got).view(bits) == np.ascontiguousarray(want).view(
        bits
    )
    return bool(equal[number].all() and np.isnan(got[~number]).all())


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", LENGTHS)
def test_one_file_at_every_length(name: str, tmp_path: Path) -> None:
    given = inputs()
    wanted = expected(given)
    path = executable(parser.parse_model(MODEL), name, tmp_path)
    for length in LENGTHS[name]:
        got = run_emulated(machine(name + length), path, [*given.values()], wanted)
        for output, want in wanted.items():
            assert got[output].dtype == want.dtype
            assert same(got[output], want), (length, output)
            assert not same(np.roll(got[output], 1), want)


# Inputs, outputs and nodes; how many times fewer instructions from 128 bits to 512 at
# least, and how many of an element at 512 at most, on RISC-V and on Arm.
COUNTED = {
    "sum of f16": (
        "float16[9, 515] x, float16[9, 515] b", "float16[9, 515] y",
        "y = Add(x, b)", 2.5, (2.0, 1.0),
    ),
    "to bf16": (
        "float[9, 515] x", "bfloat16[9, 515] y",
        "y = Cast<to = 16>(x)", 2.0, (1.0, 1.0),
    ),
    "argmax": (
        "float[9, 515] x", "int64[9, 1] y", "y = ArgMax<axis = 1>(x)",
        2.0, (2.0, 3.0),
    ),
}  # fmt: skip


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["riscv64+v", "aarch64+sve"])
@pytest.mark.parametrize("kernel", COUNTED)
def test_wider_vectors_execute_fewer_instructions(
    kernel: str, name: str, tmp_path: Path, plugin: Path
) -> None:
    given, made, nodes, fewer, most = COUNTED[kernel]
    model = parser.parse_model(f"{HEAD} k ({given}) => ({made}) {{ {nodes} }}")
    path = executable(model, name, tmp_path)
    files: list[Path] = []
    for x in model.graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type)
        files.append(tmp_path / f"{x.name}.npy")
        np.save(
            files[-1], np.random.default_rng(1).standard_normal((9, 515)).astype(kind)
        )
    first, last = (
        of_one_run(plugin, machine(name + LENGTHS[name][n]), path, files, 8).all
        for n in (0, 2)
    )
    assert first >= fewer * last
    assert last <= 9 * 515 * most[name != "riscv64+v"]
