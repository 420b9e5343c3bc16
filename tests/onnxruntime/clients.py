"""What clients of ONNX Runtime do, written once for both of its implementations."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

PAIR = """
<ir_version: 8, opset_import: ["" : 17], producer_name: "a client", domain: "tests",
 model_version: 3, metadata_props: ["language": "none", "rate": "16000"]>
pair (float[n, 3] x, float[n, 3] z) => (float[n, 3] y, float[n, 3] d)
{ y = Add(x, z)  d = Sub(x, z) }
"""
KINDS = """
<ir_version: 8, opset_import: ["" : 17]>
kinds (int64[2] a, double[k] b, bool[2] c, float16[2, m] e, string[2] s)
  => (int64[2] p, double[k] q, bool[2] r, float16[2, m] t, string[2] u)
{ p = Neg(a) q = Neg(b) r = Not(c) t = Neg(e) u = Identity(s) }
"""
LISTS = """
<ir_version: 8, opset_import: ["" : 17]>
lists (float[?, 2] a, float[k, 2] b) => (seq(float[k, 2]) s)
{ s = SequenceConstruct(a, b) }
"""
SCALED = """
<ir_version: 8, opset_import: ["" : 17]>
scaled (float[n, 3] x, float[1] s) => (float[n, 3] y)
<float[1] s = {2}, float[3] w = {1, 2, 3}> { t = Mul(x, s)  y = Add(t, w) }
"""
UNKNOWN = """
<ir_version: 8, opset_import: ["" : 17, "my.ops" : 1]>
g (float[2] x) => (float[2] y) { y = my.ops.Foo(x) }
"""
X = np.arange(12, dtype=np.float32).reshape(4, 3)
Z = np.full((4, 3), 2, np.float32)


OTHERS = np.full(1, 7, np.float32), np.full(3, 8, np.float32)


def pair(folder: Path) -> str:
    path = folder / "pair.onnx"
    onnx.save(parser.parse_model(PAIR), path)
    return str(path)


def runs(ort: Any, folder: Path) -> list[np.ndarray]:
    """By a path and by bytes; all outputs, some, one twice."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    path = pair(folder)
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    made = session.run(None, {"x": X, "z": Z})
    made += session.run(["d"], {"x": X[:2], "z": Z[:2]})
    made += session.run([], {"x": X[:1], "z": Z[:1]}, ort.RunOptions())
    names = [x.name for x in session.get_outputs()]
    other = ort.InferenceSession(
        Path(path).read_bytes(), providers=[("CPUExecutionProvider", {})]
    )
    return made + other.run(
        names[::-1],
        dict(zip([x.name for x in other.get_inputs()], (X, Z), strict=True)),
    )


def described(ort: Any, folder: Path) -> list[Any]:
    """Names, types, shapes, metadata, providers."""
    session = ort.InferenceSession(pair(folder))
    kinds = ort.InferenceSession(parser.parse_model(KINDS).SerializeToString())
    lists = ort.InferenceSession(parser.parse_model(LISTS).SerializeToString())
    scaled = ort.InferenceSession(parser.parse_model(SCALED).SerializeToString())
    sides = [*session.get_inputs(), *session.get_outputs()]
    sides += [*kinds.get_inputs(), *kinds.get_outputs()]
    sides += [*lists.get_inputs(), *lists.get_outputs(), *scaled.get_inputs()]
    sides += scaled.get_overridable_initializers()
    meta = session.get_modelmeta()
    return [
        [(x.name, x.type, x.shape) for x in sides],
        (meta.producer_name, meta.graph_name, meta.domain, meta.version),
        meta.custom_metadata_map,
        session.get_providers(),
        [x.name for x in session.get_overridable_initializers()],
    ]


def bound(ort: Any, folder: Path) -> list[np.ndarray]:
    """Inputs and outputs in memory of the client's, by arrays, addresses, values."""
    session = ort.InferenceSession(pair(folder))
    io, room = session.io_binding(), np.zeros((4, 3), np.float32)
    io.bind_cpu_input("x", X)
    io.bind_input("z", "cpu", 0, np.float32, Z.shape, Z.ctypes.data)
    io.bind_output("d", "cpu", 0, np.float32, room.shape, room.ctypes.data)
    io.bind_output("y")
    session.run_with_iobinding(io)
    made = [room.copy(), *io.copy_outputs_to_cpu()]
    io.clear_binding_outputs()
    value = ort.OrtValue.ortvalue_from_shape_and_type([4, 3], np.float32, "cpu", 0)
    io.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(Z))
    io.bind_ortvalue_output("d", value)
    session.run_with_iobinding(io)
    made += [value.numpy(), io.get_outputs()[0].numpy()]
    feeds = {"x": ort.OrtValue.ortvalue_from_numpy(X), "z": value}
    (given,) = session.run_with_ort_values(["y"], feeds)
    assert (given.shape(), given.data_type(), given.is_tensor()) == (
        [4, 3],
        "tensor(float)",
        True,
    )
    assert given.device_name().lower() == "cpu"
    return [*made, given.numpy()]


def weighted(ort: Any, folder: Path) -> list[np.ndarray]:
    """A weight that a call gives; weights of a client's in place of the model's."""
    model = parser.parse_model(SCALED)
    session = ort.InferenceSession(model.SerializeToString())
    five = np.array([5], np.float32)
    made = session.run(None, {"x": X, "s": five})
    made += session.run(None, {"x": X.tolist()})
    for weight in model.graph.initializer:  # external data is of raw bytes
        array = numpy_helper.to_array(weight)
        weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    path = folder / f"{ort.__name__}.onnx"
    onnx.save(
        model, path, save_as_external_data=True, size_threshold=0, location=path.stem
    )
    for give in (from_folder, from_memory, by_name):
        options = ort.SessionOptions()
        # ONNX Runtime reads what it is given without keeping it.
        kept = give(ort, options, path.with_suffix(""))
        made += ort.InferenceSession(path.read_bytes(), options).run(None, {"x": X})
        del kept
    return made


def from_folder(ort: Any, options: Any, held: Path) -> object:
    key = "session.model_external_initializers_file_folder_path"
    options.add_session_config_entry(key, str(held.parent))


def from_memory(ort: Any, options: Any, held: Path) -> object:
    content = held.read_bytes()
    options.add_external_initializers_from_files_in_memory(
        [held.name], [content], [len(content)]
    )
    return content


def by_name(ort: Any, options: Any, held: Path) -> object:
    made = [ort.OrtValue.ortvalue_from_numpy(x) for x in OTHERS]
    options.add_external_initializers(["s", "w"], made)
    return made


def later(ort: Any, folder: Path) -> list[Any]:
    """Results and errors reach the callback."""
    session, done, told = ort.InferenceSession(pair(folder)), threading.Event(), []

    def callback(results: list[Any], data: Any, error: str) -> None:
        told.append((results[0].tolist() if results else [], data, bool(error)))
        done.set()

    for feeds in ({"x": X, "z": Z}, {"x": X, "z": Z[:, :2]}):
        done.clear()
        session.run_async(["y"], feeds, callback, "data")
        assert done.wait(60)
    return told


def mistakes(ort: Any, folder: Path) -> list[str]:
    """The class of what is raised for each of them."""
    session = ort.InferenceSession(pair(folder))
    broken = folder / "broken.onnx"
    broken.write_bytes(b"\x00\x01 no model at all")
    unknown = parser.parse_model(UNKNOWN).SerializeToString()
    terminated = ort.RunOptions()
    terminated.terminate = True
    weights = ort.InferenceSession(parser.parse_model(SCALED).SerializeToString())
    tried = [
        lambda: setattr(ort.SessionOptions(), "intra_op_threads", 2),
        lambda: ort.SessionOptions().get_session_config_entry("none"),
        lambda: weights.run(None, {"x": X, "s": np.ones(3, np.float32)}),
        lambda: weights.run(None, {"x": X, "w": np.ones(3, np.float32)}),
        lambda: session.run_async(None, {"x": X}, print, None),
        lambda: session.io_binding().bind_cpu_input("other", X),
        lambda: session.run_with_iobinding(session.io_binding()),
        lambda: ort.InferenceSession(str(folder / "missing.onnx")),
        lambda: ort.InferenceSession(str(broken)),
        lambda: ort.InferenceSession(17),
        lambda: session.run(None, {"x": X}),
        lambda: session.run(None, {"x": X.astype(np.float64), "z": Z}),
        lambda: session.run(None, {"x": X[:, :2], "z": Z}),
        lambda: session.run(None, {"x": X, "z": Z, "other": Z}),
        lambda: session.run(["w"], {"x": X, "z": Z}),
        lambda: session.run(None, {"x": X, "z": Z}, terminated),
        lambda: ort.InferenceSession(unknown).run(None, {"x": X[0, :2]}),
    ]
    return [raised(each) for each in tried]


def raised(work: Any) -> str:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - its class is what is asked for
        return type(error).__name__
    return "nothing"
