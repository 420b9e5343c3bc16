"""The pass: types, ranks and scalable vectors, what is left alone, and no libm call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nanoloom.ir.mlir import context, ir, llvm, operations, run_pipeline, vector
from nanoloom.linalg.builder.scalar import NONPOSITIVE
from nanoloom.target import by_name
from nanoloom.vector.math import BUILDERS, EXPANSIONS, expand_math, sigmoid
from nanoloom.vector.math.expand import expand_doubles
from tests.vector.assembly import loop_with
from tests.vector.kernel_harness import program_of, stage_text
from tests.vector.math_harness import TO_LLVM, Compiled, lanes_module

# Each is an instruction, or two, of every target with fused multiply-add.
INSTRUCTIONS = {
    "llvm.fma", "llvm.sqrt", "llvm.copysign", "llvm.roundeven", "llvm.fabs",
    "llvm.trunc", "llvm.vector",
}  # fmt: skip
TYPES = ["f32", "vector<16xf32>", "vector<2x3x8xf32>", "vector<[4]xf32>"]
EXPANDED = [name for name, expansion in EXPANSIONS.items() if not expansion.native]


@pytest.fixture(autouse=True)
def _mlir() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with context():
        yield


def operands(name: str) -> int:
    return 2 if name in ("math.powf", "math.atan2", "arith.remf") else 1


def function(name: str, kind: str) -> ir.Module:
    """A function that applies one operation of the math dialect."""
    names = ["%x", "%y"][: operands(name)]
    arguments = ", ".join(f"{x}: {kind}" for x in names)
    kinds = ", ".join([kind] * len(names))
    return ir.Module.parse(f"""
      func.func @f({arguments}) -> {kind} {{
        %r = "{name}"({", ".join(names)}) : ({kinds}) -> {kind}
        return %r : {kind}
      }}""")


def left(module: ir.Module) -> set[str]:
    """Names of the operations of the math dialect in a module."""
    found = operations(module, lambda op: op.operation.name.startswith("math."))
    return {op.operation.name for op in found}


def calls(text: str) -> set[str]:
    """What LLVM IR calls, intrinsics without their types."""
    names = re.findall(r"call [^@]*@([\w.$]+)", text)
    return {".".join(name.split(".")[:2]) for name in names}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", EXPANDED)
def test_no_call_is_left(name: str, kind: str) -> None:
    module = function(name, kind)
    expand_math(module)
    assert module.operation.verify()
    assert name not in left(module)
    run_pipeline(module, TO_LLVM)
    text = llvm.translate_module_to_llvmir(module.operation)
    assert calls(text) <= INSTRUCTIONS


def test_a_call_would_be_seen() -> None:
    module = function("math.erf", "f32")
    run_pipeline(module, ("convert-math-to-libm", *TO_LLVM))
    text = llvm.translate_module_to_llvmir(module.operation)
    assert calls(text) == {"erff"}


@pytest.mark.parametrize("kind", TYPES)
def test_sigmoid_takes_every_type(kind: str) -> None:
    module = function("math.absf", kind)
    (place,) = operations(module, lambda op: op.operation.name == "math.absf")
    with ir.InsertionPoint(place), ir.Location.unknown():
        made = sigmoid(place.operation.operands[0])
    assert made.type == place.operation.results[0].type
    place.operation.results[0].replace_all_uses_with(made)
    place.operation.erase()
    run_pipeline(module, TO_LLVM)
    assert calls(llvm.translate_module_to_llvmir(module.operation)) <= INSTRUCTIONS


@pytest.mark.parametrize("kind", ["f64", "vector<8xf64>", "tensor<8xf32>"])
def test_other_types_are_left_alone(kind: str) -> None:
    module = function("math.exp", kind)
    before = str(module)
    expand_math(module)
    assert str(module) == before


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v2", "aarch64"])
def test_doubles_are_expanded_where_a_multiply_add_is_an_instruction(name: str) -> None:
    module = function("math.tanh", "vector<4xf64>")
    expand_doubles(module, by_name(name))
    assert ("math.tanh" in left(module)) == (name == "x86-64-v2")
    single = function("math.tanh", "vector<4xf32>")
    expand_doubles(single, by_name(name))
    assert left(single) == {"math.tanh"}


def test_a_kernel_of_doubles_has_vectors() -> None:
    """Four numbers at once, and no call for each."""
    target = by_name("x86-64-v3")
    program = program_of(
        lambda b, x: b.elementwise(lambda e: e.math("exp"), x), ((100,), "float64"),
        target=target,
    )  # fmt: skip
    text = stage_text(program, "asm", target)
    assert re.search(r"vfmadd\d+pd\t.*%ymm", "\n".join(loop_with(text, "vfmadd")))
    assert "call" not in text


def test_native_operations_are_left_alone() -> None:
    module = function("math.sqrt", "vector<16xf32>")
    expand_math(module)
    assert left(module) == {"math.sqrt"}


def test_nested_regions_chains_and_unused_results() -> None:
    module = ir.Module.parse("""
      func.func @f(%x: f32, %n: index, %b: vector<4xf16>) -> f32 {
        %zero = arith.constant 0 : index
        %r = scf.for %i = %zero to %n step %n iter_args(%a = %x) -> f32 {
          %e = math.exp %a : f32
          %unused = math.log %e : f32
          %t = math.tanh %e : f32
          scf.yield %t : f32
        }
        %h = math.sin %b : vector<4xf16>
        return %r : f32
      }""")
    expand_math(module)
    assert module.operation.verify()
    assert left(module) <= {"math.fma", "math.absf", "math.copysign"}
    before = str(module)
    expand_math(module)
    assert str(module) == before


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["math.exp", "math.tanh", "math.log", "math.cbrt"])
@pytest.mark.parametrize(
    ("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)]
)
def test_short_floats_are_rounded_once(name: str, kind: str, dtype: Any) -> None:
    """Every value of the type: the f32 result, rounded."""
    module = lanes_module(f"16x{kind}", 1, name)
    expand_math(module)
    bits = np.arange(2**16, dtype=np.uint16)
    infinity = np.array(np.inf, dtype).view(np.uint16)
    x = bits[bits & 0x7FFF <= infinity].view(dtype)  # all but NaN
    wide = Compiled.build("16xf32", 1, EXPANSIONS[name].build)
    with np.errstate(over="ignore"):
        want = wide(x.astype(np.float32)).astype(dtype)
    got, want = Compiled(module)(x).astype(np.float32), want.astype(np.float32)
    # The bf16 conversion of AVX512 makes 0 of a denormal.
    flushed = (np.abs(want) < 2.0**-126) & (got == 0) & (kind == "bf16")
    np.testing.assert_array_equal(np.where(flushed, want, got), want)
    assert not np.array_equal(np.zeros_like(got), want)


def test_a_marked_exp_makes_no_denormals() -> None:
    """Unmarked it rounds into them; exact zeros are zeros either way."""
    x = np.array([-87, -88, -103, -104, -177, -1e30, -np.inf, np.nan], np.float32)
    plain, marked = (lanes_module("16xf32", 1, "math.exp") for _ in range(2))
    for op in operations(marked, lambda op: op.operation.name == "math.exp"):
        op.operation.attributes[NONPOSITIVE] = ir.UnitAttr.get()
    expand_math(plain)
    expand_math(marked)
    tiny = np.finfo(np.float32).tiny
    gradual, flushed = Compiled(plain)(x), Compiled(marked)(x)
    assert flushed[0] == pytest.approx(gradual[0], rel=3e-7)
    assert flushed[1:-1].tolist() == [0] * 6
    assert (gradual[1:3] > 0).all() and (gradual[1:3] < tiny).all()
    assert gradual[3:-1].tolist() == [0] * 4
    assert np.isnan([flushed[-1], gradual[-1]]).all()


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize("name", [*EXPANDED, *BUILDERS])
def test_scalars_and_matrices_of_lanes_give_the_same_bits(name: str) -> None:
    """f32 one at a time and vector<2x16xf32> agree with vector<16xf32>."""
    build = (EXPANSIONS | BUILDERS)[name].build

    def in_rows(*x: ir.Value) -> ir.Value:
        rows = ir.VectorType.get([2, 16], ir.F32Type.get())
        return vector.extract(build(*(vector.broadcast(rows, v) for v in x)), [], [1])

    rng = np.random.default_rng(3)
    x = [rng.normal(size=1000).astype(np.float32) * 4 for _ in range(operands(name))]
    x = [-abs(v) for v in x] if "x <= 0" in name else x
    flat = Compiled.build("16xf32", len(x), build)(*x)
    scalar = Compiled.build("f32", len(x), build)(*x)
    matrix = Compiled.build("16xf32", len(x), in_rows)(*x)
    np.testing.assert_array_equal(scalar, flat)
    np.testing.assert_array_equal(matrix, flat)
