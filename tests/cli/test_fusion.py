"""--emit fusion: a kernel's fusions, and the tensors between kernels."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import save
from onnx.numpy_helper import from_array
from onnx.parser import parse_model

from nanoloom.schedule.print_fusions import size
from tests.cli.conftest import Command

LAYER = """
<ir_version: 10, opset_import: ["": 21]>
layer (float[67, 45] x, float[45, 53] w, float[53] b) => (float[67, 53] y, float[53] t)
<float[45, 53] w, float[53] b> {
    m = MatMul(x, w)  h = Add(m, b)  e = Relu(h)  y = Softmax<axis=0>(e)
    a = ReduceSum<keepdims=0>(e)  t = Mul(a, b)
}
"""


def test_fusions_and_what_stays_apart(tmp_path: Path, nanoloom: Command) -> None:
    save(parse_model(LAYER), tmp_path / "layer.onnx")
    said = nanoloom("compile", tmp_path / "layer.onnx", "--emit", "fusion", "-o", "-")
    assert said.status == 0, said
    first, *_ = said.out.split("moved, by cache")
    found = re.search(r"product at (\w+) of (\w+): ([\d,]+) points a step", first)
    assert found and int(found[3].replace(",", "")) % 45 == 0, said.out
    assert "none again; saves 27.7 KiB of memory's traffic" in first  # 2 * 4 * 67 * 53
    apart = said.out.split("not fused:")[1]
    assert "13.9 KiB" in apart and "MatMul_0 -> " in apart


PADDED = """
<ir_version: 10, opset_import: ["": 21]>
layers (float[1, 32, 28, 28] x) => (y) {
    a = Conv(x, w)  b = Conv<group=GROUPS, pads=[1, 1, 1, 1]>(a, d)  y = Conv(b, w)
}
"""


@pytest.mark.parametrize(
    ("groups", "why"),
    [(8, "it lies beside a border"), (32, r"blocks .* spare .* 0 B .* [\d,]+ points")],
)
def test_what_lies_in_a_border_is_said_to(
    groups: int, why: str, tmp_path: Path, nanoloom: Command
) -> None:
    """It is read in no other shape: another kernel writes the numbers around it, unless
    its reader's blocks made it, which does not pay here."""
    model = parse_model(PADDED.replace("GROUPS", str(groups)))
    for name, shape in (("w", (32, 32, 1, 1)), ("d", (32, 32 // groups, 3, 3))):
        weight = from_array(np.ones(shape, np.float32), name)
        model.graph.initializer.append(weight)
    save(model, tmp_path / "layers.onnx")
    said = nanoloom("compile", tmp_path / "layers.onnx", "--emit", "fusion", "-o", "-")
    assert said.status == 0, said
    (line,) = re.findall("Conv_0 -> Conv_1: .*", said.out)
    assert re.search(why, line) and "shape" not in line


APART = """
<ir_version: 10, opset_import: ["": 21]>
apart (float[2, 24, 30] x, float[30, 40] v, float[40, 20] w) => (y, s, z) {
    a = MatMul(x, v)  y = MatMul(a, w)  b = Relu(x)  s = Softmax<axis=1>(b)
    c = ReduceMax<keepdims=1>(b, axes)  z = Mul(c, b)
}
"""


def test_why_no_rule_joins(tmp_path: Path, nanoloom: Command) -> None:
    """How often a reader reads each number, or that others read it, too."""
    model = parse_model(APART)
    model.graph.initializer.append(from_array(np.array([1]), "axes"))
    save(model, tmp_path / "apart.onnx")
    said = nanoloom("compile", tmp_path / "apart.onnx", "--emit", "fusion", "-o", "-")
    assert said.status == 0, said
    apart = said.out.split("not fused:")[1]
    line = r"MatMul_0 -> MatMul_1: .* (\S+) times, .* (\S+ B) of its"
    product = re.search(line, apart)
    assert product and product.groups() == ("20", f"{4 * 40 * 20:,} B"), apart
    assert "Softmax_3 -> Softmax_3: 240 B: its reader reads each number 24" in apart
    assert "kernels read it, and each would make it again" in apart


def test_the_file_has_its_own_ending(tmp_path: Path, nanoloom: Command) -> None:
    save(parse_model(LAYER), tmp_path / "layer.onnx")
    said = nanoloom(
        "compile", tmp_path / "layer.onnx", "-o", tmp_path / "layer.fusion.txt"
    )
    assert said.status == 0, said
    assert "moved, by cache" in (tmp_path / "layer.fusion.txt").read_text()


def test_bytes_as_people_read_them() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1536, 3 << 20, 5 << 30)] == [
        "0 B", "1023 B", "1 KiB", "1.5 KiB", "3 MiB", "5 GiB",
    ]  # fmt: skip
