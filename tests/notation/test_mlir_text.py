"""MLIR text: what goes in, the numbers, and one sentence for all that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.ir import mlir
from nanoloom.kernels.program import Program
from nanoloom.notation.mlir_text import Text
from nanoloom.target.host import host
from tests.notation.programs import EPSILON, Array, normal
from tests.vector.kernel_harness import cut, executable

LAYER = """
func.func @main(%x: tensor<9x17xf32>, %w: tensor<17x21xf32>) -> tensor<9x21xf32> {
  %zero = arith.constant 0.0 : f32
  %bias = arith.constant dense<[BIAS]> : tensor<21xf32>
  %empty = tensor.empty() : tensor<9x21xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<9x21xf32>)
      -> tensor<9x21xf32>
  %product = linalg.matmul ins(%x, %w : tensor<9x17xf32>, tensor<17x21xf32>)
      outs(%fill : tensor<9x21xf32>) -> tensor<9x21xf32>
  %wide = linalg.broadcast ins(%bias : tensor<21xf32>)
      outs(%empty : tensor<9x21xf32>) dimensions = [0]
  %sum = arith.addf %product, %wide : tensor<9x21xf32>
  %zeros = arith.constant dense<0.0> : tensor<9x21xf32>
  %relu = arith.maximumf %sum, %zeros : tensor<9x21xf32>
  return %relu : tensor<9x21xf32>
}
""".replace("BIAS", ", ".join(f"{n}.5" for n in range(-10, 11)))


def program_of(text: str) -> Program:
    with mlir.context():
        return cut(Text(text).lower())


def run(text: str, *inputs: Array) -> list[Any]:
    return executable(program_of(text), host())(*inputs)


def wanted(x: Array, w: Array) -> tuple[Array, Array]:
    """Of LAYER: the result in float64, and how much of it may be rounded."""
    wide = [v.astype(np.float64) for v in (x, w)]
    bias = np.array([float(f"{n}.5") for n in range(-10, 11)])
    room = 20 * EPSILON * (abs(wide[0]) @ abs(wide[1]) + abs(bias))
    return np.maximum(wide[0] @ wide[1] + bias, 0), room


def test_named_operations_are_one_kernel() -> None:
    program = program_of(LAYER)
    ((name, kernel),) = program.kernels.items()
    assert name.startswith("contraction_f32_9x21x17")
    assert [s.name for s in kernel.nest.stages] == [
        "fill",
        "product",
        "point",
        "point_2",
    ]
    assert [call.layer for call in program.calls] == ["line 8"]
    assert [p.name for p in program.parameters] == ["constant.0"]
    x, w = normal(9, 17), normal(17, 21, seed=1)
    result, room = wanted(x, w)
    assert (abs(run(LAYER, x, w)[0] - result) <= room).all()
    assert (result > room).mean() > 0.2


def test_a_file_is_compiled_like_a_model(tmp_path: Path) -> None:
    (tmp_path / "layer.mlir").write_text(LAYER)
    x, w = normal(9, 17), normal(17, 21, seed=1)
    result, room = wanted(x, w)
    for given in (tmp_path / "layer.mlir", str(tmp_path / "layer.mlir"), LAYER):
        program = nanoloom.compile(given, cache=Cache(tmp_path / "cache"))
        assert [i.name for i in program.inputs] == ["arg0", "arg1"]
        made = program({"arg0": x, "arg1": w})["result0"]
        assert (abs(made - result) <= room).all()


def test_what_emit_linalg_writes_goes_in_again(tmp_path: Path) -> None:
    with mlir.context():
        written = str(Text(LAYER).lower().module)
    assert [x.name for x in Text(written).inputs] == ["arg0", "arg1", "constant.0"]


def test_sums_onto_an_argument() -> None:
    text = """
    func.func @f(%a: tensor<5x7xi8>, %b: tensor<7x33xi8>, %c: tensor<5x33xi32>)
        -> (tensor<5x33xi32>, tensor<33x5xi32>) {
      %0 = linalg.matmul ins(%a, %b : tensor<5x7xi8>, tensor<7x33xi8>)
          outs(%c : tensor<5x33xi32>) -> tensor<5x33xi32>
      %1 = tensor.empty() : tensor<33x5xi32>
      %2 = linalg.transpose ins(%0 : tensor<5x33xi32>) outs(%1 : tensor<33x5xi32>)
          permutation = [1, 0]
      return %0, %2 : tensor<5x33xi32>, tensor<33x5xi32>
    }
    """
    random = np.random.default_rng(0)
    a, b = (random.integers(-128, 128, s).astype(np.int8) for s in ((5, 7), (7, 33)))
    c = random.integers(-(1 << 20), 1 << 20, (5, 33)).astype(np.int32)
    made = run(text, a, b, c)
    result = c + a.astype(np.int32) @ b.astype(np.int32)
    assert (made[0] == result).all()
    assert (made[1] == result.T).all()


@pytest.mark.parametrize("trips", [0, 1, 2])
def test_loops_of_few_trips_that_exchange_values(trips: int) -> None:
    text = f"""
    func.func @f(%x: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %last = arith.constant {trips} : index
      %made:2 = scf.for %i = %zero to %last step %one iter_args(%a = %x, %b = %x)
          -> (tensor<7xf32>, tensor<7xf32>) {{
        %sum = arith.addf %a, %b : tensor<7xf32>
        scf.yield %b, %sum : tensor<7xf32>, tensor<7xf32>
      }}
      return %made#0, %made#1 : tensor<7xf32>, tensor<7xf32>
    }}
    """
    x = normal(7)
    a, b = x, x
    for _ in range(trips):
        a, b = b, a + b
    made = run(text, x)
    assert (made[0] == a).all() and (made[1] == b).all()


def test_windows() -> None:
    text = """
    func.func @f(%x: tensor<1x9x11x3xi32>, %k: tensor<3x2x3x5xi32>)
        -> (tensor<1x7x10x5xi32>, tensor<1x4x5x3xi32>) {
      %zeros = arith.constant dense<0> : tensor<1x7x10x5xi32>
      %conv = linalg.conv_2d_nhwc_hwcf
          ins(%x, %k : tensor<1x9x11x3xi32>, tensor<3x2x3x5xi32>)
          outs(%zeros : tensor<1x7x10x5xi32>) -> tensor<1x7x10x5xi32>
      %low = arith.constant dense<-2147483648> : tensor<1x4x5x3xi32>
      %window = tensor.empty() : tensor<2x2xi32>
      %pool = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>}
          ins(%x, %window : tensor<1x9x11x3xi32>, tensor<2x2xi32>)
          outs(%low : tensor<1x4x5x3xi32>) -> tensor<1x4x5x3xi32>
      return %conv, %pool : tensor<1x7x10x5xi32>, tensor<1x4x5x3xi32>
    }
    """
    random = np.random.default_rng(0)
    x = random.integers(-9, 10, (1, 9, 11, 3)).astype(np.int32)
    k = random.integers(-9, 10, (3, 2, 3, 5)).astype(np.int32)
    conv = sum(
        x[:, z : z + 7, y : y + 10] @ k[z, y] for z in range(3) for y in range(2)
    )
    pool = x[:, :8, :10].reshape(1, 4, 2, 5, 2, 3).max((2, 4))
    made = run(text, x, k)
    assert (made[0] == conv).all()
    assert (made[1] == pool).all()


def test_indices_known_at_run_time_stay_inside() -> None:
    text = """
    func.func @f(%table: tensor<6x3xf32>, %at: tensor<8xi64>) -> tensor<8x3xf32> {
      %empty = tensor.empty() : tensor<8x3xf32>
      %rows = linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%at : tensor<8xi64>) outs(%empty : tensor<8x3xf32>) {
      ^bb0(%row: i64, %out: f32):
        %i = arith.index_cast %row : i64 to index
        %j = linalg.index 1 : index
        %value = tensor.extract %table[%i, %j] : tensor<6x3xf32>
        linalg.yield %value : f32
      } -> tensor<8x3xf32>
      return %rows : tensor<8x3xf32>
    }
    """
    table, at = normal(6, 3), np.array([0, 5, 2, -1, 6, 1 << 40, -(1 << 40), 3])
    assert (run(text, table, at)[0] == table[np.clip(at, 0, 5)]).all()


def test_loops_and_slices_and_bf16() -> None:
    text = """
    func.func @f(%x: tensor<4x6xbf16>) -> tensor<4x6xbf16> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %row = arith.constant dense<[1.0, 2.0, 4.0, 0.5, -1.0, 8.0]> : tensor<6xbf16>
      %last = tensor.extract_slice %x[1, 0] [3, 6] [1, 1]
          : tensor<4x6xbf16> to tensor<3x6xbf16>
      %moved = tensor.insert_slice %last into %x[0, 0] [3, 6] [1, 1]
          : tensor<3x6xbf16> into tensor<4x6xbf16>
      %made = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %moved)
          -> tensor<4x6xbf16> {
        %empty = tensor.empty() : tensor<4x6xbf16>
        %next = linalg.generic {
            indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                             affine_map<(i, j) -> (i, j)>],
            iterator_types = ["parallel", "parallel"]}
            ins(%y, %row : tensor<4x6xbf16>, tensor<6xbf16>)
            outs(%empty : tensor<4x6xbf16>) {
        ^bb0(%a: bf16, %b: bf16, %out: bf16):
          %c = arith.mulf %a, %b : bf16
          linalg.yield %c : bf16
        } -> tensor<4x6xbf16>
        scf.yield %next : tensor<4x6xbf16>
      }
      return %made : tensor<4x6xbf16>
    }
    """
    import ml_dtypes

    x = normal(4, 6, dtype=ml_dtypes.bfloat16)
    row = np.array([1.0, 2.0, 4.0, 0.5, -1.0, 8.0])
    moved = x.astype(np.float64)[[1, 2, 3, 3]]
    assert (run(text, x)[0].astype(np.float64) == moved * row**3).all()


F = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
REFUSED = [
    (
        "func.func @f(",
        r"text:1: is no valid MLIR: expected",
    ),
    (
        F + "  return %y : tensor<4xf32>\n}",
        r"text:2: is no valid MLIR: use of undeclared SSA value name",
    ),
    (
        F + '  %0 = "foo.bar"() : () -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}',
        r"text:2: is no valid MLIR: .*unregistered dialect",
    ),
    (
        "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
        "  return %x : tensor<?xf32>\n}",
        r"text:1: the type tensor<\?xf32> has a dimension that is no number from 1 on",
    ),
    (
        "func.func @f(%x: memref<4xf32>) {\n  return\n}",
        r"text:1: its function takes or gives memref<4xf32>; write ranked tensors",
    ),
    ("func.func @f(%x: tensor<4xf32>) {\n  return\n}", "text: .*gives nothing"),
    ("module {\n}", "text: one public function is wanted, there is none; call it"),
    (
        F
        + "  return %x : tensor<4xf32>\n}\n"
        + F.replace("@f", "@g")
        + "  return %x : tensor<4xf32>\n}",
        "text: one public function is wanted, there is @f, @g; call it @main",
    ),
    (
        "memref.global @g : memref<4xf32>\n" + F + "  return %x : tensor<4xf32>\n}",
        "text:1: memref.global stands beside the function",
    ),
    (
        "func.func private @h(tensor<4xf32>) -> tensor<4xf32>\n"
        + F
        + "  %0 = call @h(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  return %0 : tensor<4xf32>\n}",
        "text:3: calls another function; inline it",
    ),
    (
        F + "  %0 = tensor.empty() : tensor<4xf32>\n"
        "  %1 = linalg.softmax dimension(0) ins(%x : tensor<4xf32>)\n"
        "      outs(%0 : tensor<4xf32>) -> tensor<4xf32>\n"
        "  return %1 : tensor<4xf32>\n}",
        "text:3: linalg.softmax is not supported; write linalg on tensors, tensor",
    ),
    (
        "func.func @f(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {\n"
        "  return %x : tensor<4xcomplex<f32>>\n}",
        "text:1: the type tensor<4xcomplex<f32>> is not supported; write tensors",
    ),
    (
        "func.func @f(%x: tensor<4xi1>) -> tensor<4xi1> {\n"
        "  return %x : tensor<4xi1>\n}",
        "text:1: the type tensor<4xi1> is not supported; write tensors of i8",
    ),
    (
        F + "  %c = arith.constant dense_resource<w> : tensor<4xf32>\n"
        "  %0 = arith.addf %x, %c : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}",
        "text:2: its elements are not in the text; write dense",
    ),
    (
        F + "  %0 = tensor.empty() : tensor<4xf32>\n  %1 = linalg.generic {\n"
        "    indexing_maps = [affine_map<(i) -> (3 - i)>, affine_map<(i) -> (i)>],\n"
        '    iterator_types = ["parallel"]}\n'
        "    ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {\n"
        "  ^bb0(%a: f32, %b: f32):\n    linalg.yield %a : f32\n"
        "  } -> tensor<4xf32>\n  return %1 : tensor<4xf32>\n}",
        r"text:3: an index of \(d0\) -> \(-d0 \+ 3\) is no sum of loops times positive",
    ),
    (
        "func.func @f(%x: tensor<8000000x9000000xf32>) -> "
        "tensor<8000000x9000000xf32> {\n"
        "  return %x : tensor<8000000x9000000xf32>\n}",
        "text:1: tensor<8000000x9000000xf32> needs 288 TB, .* of memory are free",
    ),
    *(
        (
            LAYER.replace("dimensions = [0]", f"dimensions ={wrong}"),
            "text:11: is no valid MLIR: dimensions is no list of numbers",
        )
        for wrong in (" [0", "0]", " [,]", "= [0]", " [i]", " %[0]")
    ),
    (
        "func.func @f(%x: tensor<4xf32>, %t: tensor<i8>) -> tensor<4xf32> {\n"
        "  %v = tensor.extract %t[] : tensor<i8>\n  %z = arith.constant 0 : i8\n"
        "  %c = arith.cmpi ne, %v, %z : i8\n  cf.cond_br %c, ^a, ^b\n"
        "^a:\n  return %x : tensor<4xf32>\n^b:\n"
        "  %0 = arith.negf %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}",
        "text:1: func.func has several blocks",
    ),
    (
        F + "  %c = arith.constant 1 : index\n"
        "  %0 = tensor.extract_slice %x[%c] [4] [1] : tensor<4xf32> to tensor<4xf32>\n"
        "  return %0 : tensor<4xf32>\n}",
        "text:3: tensor.extract_slice at a place or of a size that is not a number",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_refusals(text: str, sentence: str) -> None:
    with mlir.context(), pytest.raises(Error, match=sentence):
        Text(text).lower()


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(Error, match=r"nothing\.mlir: cannot be read: No such file"):
        nanoloom.compile(tmp_path / "nothing.mlir")
    (tmp_path / "binary.mlir").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Error, match=r"binary\.mlir: is no text"):
        nanoloom.compile(tmp_path / "binary.mlir")
    (tmp_path / "wrong.mlir").write_text("func.func @f(")
    with pytest.raises(Error, match=r"wrong.mlir:1: is no valid MLIR"):
        nanoloom.compile(tmp_path / "wrong.mlir")


PADDED = """
func.func @main(%x: tensor<13x17x24xf32>) -> tensor<11x9x24xf32> {
  %p = tensor.pad %x low[0, 1, 0] high[0, HIGH, 0] {
  ^bb0(%a: index, %b: index, %c: index):
    %z = arith.constant 2.5 : f32
    NUMBER
  } : tensor<13x17x24xf32> to tensor<13x19x24xf32>
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<11x9x24xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<11x9x24xf32>)
      -> tensor<11x9x24xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %y = linalg.generic {indexing_maps = [
      affine_map<(y, x, c, r, s) -> (y + r, x * 2 + s, c)>,
      affine_map<(y, x, c, r, s) -> (r, s)>,
      affine_map<(y, x, c, r, s) -> (y, x, c)>], iterator_types = [
      "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %w : tensor<13x19x24xf32>, tensor<3x3xf32>)
      outs(%f : tensor<11x9x24xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %m = arith.maximumf %a, %t : f32
    linalg.yield %m : f32
  } -> tensor<11x9x24xf32>
  return %y : tensor<11x9x24xf32>
}
"""
ONE_NUMBER = {"HIGH": "1", "NUMBER": "tensor.yield %z : f32"}


def with_words(text: str, words: dict[str, str]) -> str:
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    return text


def test_a_pad_is_a_stage_of_what_reads_it() -> None:
    text = with_words(PADDED, ONE_NUMBER)
    (kernel,) = program_of(text).kernels.values()
    assert [s.name for s in kernel.nest.stages] == ["pad", "fill", "reduction"]
    x = normal(13, 17, 24)
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)), constant_values=2.5)
    taps = [padded[i : i + 11, j : j + 17 : 2] for i in range(3) for j in range(3)]
    assert (run(text, x)[0] == np.max(taps, axis=0)).all()


def test_a_pad_of_several_numbers_is_refused() -> None:
    number = "%n = arith.index_cast %a : index to i32\n    "
    number += "%g = arith.sitofp %n : i32 to f32\n    tensor.yield %g : f32"
    with pytest.raises(Error, match=r"tensor\.(pad|yield) is not supported"):
        program_of(with_words(PADDED, {**ONE_NUMBER, "NUMBER": number}))
