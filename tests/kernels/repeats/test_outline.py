"""What is taken out of the function, and the calls that it becomes."""

from __future__ import annotations

import re

import numpy as np
import onnx
import onnx.parser
import onnx_ir
import pytest

from nanoloom.graph.stage import optimize
from nanoloom.ir import mlir
from nanoloom.kernels.printer import describe_module, describe_program
from nanoloom.kernels.repeats.outline import outline_repeats
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import lower
from tests.filecheck import check_text
from tests.vector.kernel_harness import cut

HEAD = '<ir_version: 8, opset_import: ["": 18]>\n'
RNN = """agraph (float[5,2,3] x) => (float[5,1,2,7] y, float[1,2,7] h) {
  y, h = RNN <hidden_size = 7> (x, w, r)
}"""


def texts(text: str) -> tuple[str, str]:
    """The module with its bodies, and the program, as `--emit` shows them."""
    model = onnx.parser.parse_model(HEAD + text)
    weights = {"w": np.ones((1, 7, 3), "f"), "r": np.ones((1, 7, 7), "f")}
    weights |= {f"{name}2": np.concatenate((x, x)) for name, x in weights.items()}
    used = {name for node in model.graph.node for name in node.input} & set(weights)
    made = [onnx.numpy_helper.from_array(weights[name], name) for name in used]
    model.graph.initializer.extend(made)
    graph = onnx_ir.from_proto(model)
    optimize(graph, OPERATORS.keys())
    with mlir.context():
        lowered = outline_repeats(lower(graph))
        return describe_module(lowered), describe_program(cut(lowered))


def test_one_product_in_front_and_one_in_each_trip() -> None:
    module, program = texts(RNN)
    check_text(
        module,
        """
    CHECK: func.func @main(%arg0: tensor<5x2x3xf32>
    CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<5x2x3xf32>, tensor<7x3xf32>)
    CHECK: call @repeat_0(
    CHECK-NOT: scf.for
    CHECK: // @repeat_0, 5 times:
    CHECK: func.func @main({{.*}} tensor<7x7xf32> {{.*}}nanoloom.parameter = "r.res
    """,
    )
    check_text(
        program,
        """
    CHECK: func.func @contraction_f32_2x7x7_{{.*}}nanoloom.constant}
    CHECK: // calls in order:
    CHECK-NEXT: contraction_f32_5x2x7x3_{{[0-9a-f]+}}(input0, parameter0, arena
    CHECK: // 5 times:
    CHECK-NEXT: contraction_f32_2x7x7_{{[0-9a-f]+}}([[H:arena[0-9]]] by turns +64,
    CHECK-SAME: arena1 +56, [[H]] by turns -64)
    CHECK-NEXT: ([[H]] by turns -64, output0 +56)
    CHECK-NEXT: // {{[^ ]}}
    """,
    )


BOTH = """agraph (float[5,2,3] x) => (float[5,2,2,7] y, float[2,2,7] h) {
  y, h = RNN <hidden_size = 7, direction = "bidirectional"> (x, w2, r2)
}"""


def test_directions_run_beside_each_other() -> None:
    """Nothing comes between them, and the sequence is one that both write into."""
    _, program = texts(BOTH)
    check_text(
        program,
        """
    CHECK: // 5 times:
    CHECK-NEXT: by turns -64)
    CHECK-NEXT: ([[H:arena[0-9]]] by turns -64, output0 +112)
    CHECK-NEXT: // 5 times, beside those in front:
    CHECK-NOT: [[H]]
    CHECK-NEXT: by turns -64)
    CHECK-NEXT: by turns -64, output0 -112)
    """,
    )


LOOP = """agraph (int64 m, float[9] a) => (float[9] s) {{
  five = Constant<value_int = 5>()  go = Constant<value = bool {{1}}>()
  s = Loop ({trips}, go, a) <
    body = step (int64 i, bool k, float[9] x) => ({stops}, y) {{
      k2 = Identity(k)  y = Mul(x, a)  big = ReduceMax<keepdims = 0>(y)
      b = Less(big, big)  }}>
}}"""


@pytest.mark.parametrize(
    ("trips", "stops", "head"),
    [
        ("five", "k2", "// 5 times:"),
        ("m", "k2", "// at most input0 times:"),
        ("five", "b", "// at most 5 times, as long as arena[0-9] by turns .64:"),
        ("m", "b", "// at most input0 times, as long as arena[0-9] by turns .64:"),
        ("", "b", "// as long as arena[0-9] by turns .64:"),
    ],
)
def test_what_ends_a_loop(trips: str, stops: str, head: str) -> None:
    """Whoever runs the calls looks at it; the loop itself is gone."""
    module, program = texts(LOOP.format(trips=trips, stops=stops))
    assert module.count("call @repeat_") == 1
    assert module.count("scf.for") + module.count("scf.while") == 0
    assert re.search(f"^{head}$", program, re.MULTILINE)


def test_a_loop_in_a_loop_stays_in_its_kernel() -> None:
    module, program = texts("""agraph (float[3] s, float[4,5,3] x) => (float[3] t) {
      t = Scan (s, x) <num_scan_inputs = 1,
        body = outer (float[3] state, float[5,3] rows) => (next) {
          last = Scan (state, rows) <num_scan_inputs = 1,
            body = inner (float[3] v, float[3] row) => (w) { w = Add(v, row) }>
          next = Sub(last, state)
        }>
    }""")
    check_text(
        module,
        """
    CHECK: call @repeat_0
    CHECK-NOT: scf.for
    CHECK: // @repeat_0, 4 times:
    CHECK: scf.for
    CHECK-NOT: call @repeat
    """,
    )
    assert "// 4 times:" in program
