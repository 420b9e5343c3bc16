"""Why a size is compiled on its own: the node, its dimensions, and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.dynamic.dynamic_refusal import NotDynamic, Others
from nanoloom.errors import InputError
from nanoloom.inspect.dynamic_sizes import dynamic_sizes
from nanoloom.kernels.program import Limits, Program, Word
from nanoloom.kernels.sample_agreement import require_same
from nanoloom.memory.calls import Call, Place, Storage
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.weights.weight import Source, Weight

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'
# Other dimensions are open as well, and have nothing to do with it.
REASONS = {
    "Resize <axes = [2, 3], keep_aspect_ratio_policy = 'not_larger'>(x, , , crop)": (
        "node Resize_{} (Resize): not_larger: one axis decides about the extents of "
        "all, and h and w are open; give them numbers (--dim h=N --dim w=N)"
    ),
    "Pad <mode = 'reflect'>(x, pads)": (
        "node Pad_{} (Pad): mode reflect: it pads with more rows than there may be, "
        "and h and w are open; give them numbers (--dim h=N --dim w=N)"
    ),
    "DFT <axis = 0>(s)": (
        "node DFT_{} (DFT): a size along the axis that it transforms, and m "
        "is open; give it a number (--dim m=N)"
    ),
}


def model(node: str) -> onnx.ModelProto:
    """The node, and another one whose dimensions are not its own."""
    node = node.replace("'", '"')
    text = f"""
    g (float[1, 4, h, w] x, float[p, q] z, float[m, 2, 2] s)
      => (float[a, b, c, d] y, float[p, q] o)
    {{
        o = Relu (z)
        crop = Constant <value_ints = [3, 3]> ()
        pads = Constant <value_ints = [0, 0, 1, 999, 0, 0, 1, 1]> ()
        y = {node}
    }}
    """
    return onnx.parser.parse_model(HEAD + text)


@pytest.mark.parametrize("node", REASONS)
def test_a_node_says_which_dimensions(node: str) -> None:
    made = model(node)
    (number,) = (i for i, x in enumerate(made.graph.node) if x.output[0] == "y")
    why = dynamic_sizes(made.SerializeToString(), {}, Cache.temporary()).why
    assert why.startswith(REASONS[node].format(number))


def test_a_dimension_that_no_input_has() -> None:
    text = 'g (float[2, "past + new"] x) => (float[2, m] y) { y = Relu (x) }'
    made = onnx.parser.parse_model(HEAD + text.replace('"past + new"', "p"))
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "past + new"
    why = dynamic_sizes(made.SerializeToString(), {}, Cache.temporary()).why
    assert why == (
        "dimension past + new is an expression of what no input has, and new and past "
        "are open; give them numbers (--dim new=N --dim past=N)"
    )


def test_kernels_of_a_schedule(tmp_path: Path) -> None:
    made = onnx.parser.parse_model(
        HEAD + "g (float[n, 2] x) => (float[n, 2] y) { y = Relu (x) }"
    )
    options = CompileOptions(by_name("x86-64-v3"), layout="last")
    program = nanoloom.compile(made, options=options, cache=Cache(tmp_path))
    assert program.open.reason == (
        "its kernels are scheduled for known sizes, and n is open; give it a number "
        "(--dim n=N)"
    )


def test_a_library_says_it_once() -> None:
    made, cache = model("Pad <mode = 'reflect'>(x, pads)"), Cache.temporary()
    program = nanoloom.compile(made.SerializeToString(), cache=cache)
    with pytest.raises(InputError) as refusal:
        program.save("/nowhere/pad.so")
    assert str(refusal.value).count("--dim h=N") == 1


def program(counts: tuple[int, ...], checked: str = "") -> Program:
    """Calls that read so many constants each; one looks at indices."""
    parts = [Place(Storage.PARAMETER, i) for i in range(max(counts))]
    calls = [Call("k", tuple(parts[:n]), f"layer{i}") for i, n in enumerate(counts)]
    checks = [Word(Limits(0, 3, checked, "index"), 0, 0)] if checked else []
    array = np.zeros(1)
    source = Source(array, "", array.shape, array.dtype, lambda: array)
    weights = (Weight(source),) * len(parts)
    return Program({}, tuple(calls), (), (), weights, (), (), 0, tuple(checks))


def test_constants_that_other_sizes_need() -> None:
    told = "node layer1: other sizes need more constants, or fewer"
    with pytest.raises(NotDynamic, match=told):
        require_same([program((1, 1, 2)), program((1, 2, 2)), program((1, 3, 2))])


def test_indices_that_other_sizes_look_at() -> None:
    told = "node Gather_3: other sizes look at other indices"
    with pytest.raises(NotDynamic, match=told):
        require_same([program((1,), "node Gather_3"), program((1,), "node Gather_4")])


def test_other_samples_may_be_computed_in_as_many_steps() -> None:
    """Which of two sizes is larger decides about steps: in some samples it is alike."""
    told = "other sizes are computed in more steps, or fewer"
    with pytest.raises(NotDynamic, match=told) as found:
        require_same([program((1, 1)), program((1,)), program((1, 1))])
    assert found.value.others is Others.ANY
