"""From a model's name to an ONNX file, by either of PyTorch's exporters."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import tempfile
import warnings
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import PreTrainedModel

from benchmarks.models.table import Variant, find, seeded_inputs
from benchmarks.models.weights import calibrate, randomize
from nanoloom.errors import InputError, ModelError

Exporter = Literal["torchscript", "dynamo"]
DYNAMO_OPSETS = range(18, 26)
TORCHSCRIPT_OPSETS = range(13, 21)
ATTENTION_OPSET = 14  # the first that scaled_dot_product_attention exports to

# Other sizes than the inputs of the check, so a size frozen by the exporter shows.
# Neither may be 0 or 1, which torch.export always freezes.
TRACED = {"batch": 2, "sequence": 17, "frames": 6}
CALIBRATION = {"batch": 4}  # images for the statistics of batch norms
CALIBRATION_SMALL = {"batch": 16}
# Two float32 programs that add in different orders, relative to the largest output.
AGREEMENT = 1e-4

Arrays = Mapping[str, NDArray[Any]]


def write(
    name: str,
    path: Path,
    opset: int = 17,
    small: bool = False,
    exporter: Exporter | None = None,
    seed: int = 0,
) -> Path:
    """Write the model `name` with random weights to `path` and return `path`.

    `exporter` is by default TorchScript's up to opset 17, torch.export's from 18.
    The file is checked: ONNX Runtime must give PyTorch's numbers on seeded inputs.
    Raises InputError for an unknown name or opset, ModelError if the check fails.
    """
    exporter = exporter or ("dynamo" if opset in DYNAMO_OPSETS else "torchscript")
    known = DYNAMO_OPSETS if exporter == "dynamo" else TORCHSCRIPT_OPSETS
    if opset not in known:
        raise InputError(
            f"the {exporter} exporter does not write opset {opset}",
            hint=f"choose {known.start} to {known.stop - 1}",
        )
    with quiet():
        module = make(name, small, seed)
        if opset < ATTENTION_OPSET:
            use_eager_attention(module)
        export(module, name, path, opset, small, exporter)
    verify(module, path, seeded_inputs(name, small, seed))
    return path


def make(name: str, small: bool, seed: int) -> nn.Module:
    """The PyTorch module of the model, in evaluation mode, with random weights."""
    model = find(name)
    family = importlib.import_module(f"benchmarks.models.{model.family}")
    module: nn.Module = family.make(name, small)
    randomize(module, seed, family.GAIN)
    calibrate(module, calibration_batch(name, small, seed))
    return module.eval()


def calibration_batch(name: str, small: bool, seed: int) -> list[torch.Tensor]:
    """Seeded inputs of several rows, also where the model's own batch is fixed."""
    sizes = CALIBRATION_SMALL if small else CALIBRATION
    arrays = list(seeded_inputs(name, small, seed + 1, sizes).values())
    if arrays[0].ndim == 4 and len(arrays[0]) < sizes["batch"]:
        shape = (sizes["batch"], *arrays[0].shape[1:])
        generator = np.random.default_rng(seed + 1)
        arrays = [generator.standard_normal(shape, np.float32)]
    return [torch.from_numpy(array) for array in arrays]


def use_eager_attention(module: nn.Module) -> None:
    """Spell attention as MatMul and Softmax, in every transformers model inside."""
    for part in module.modules():
        if isinstance(part, PreTrainedModel):
            part.set_attn_implementation("eager")


class Positional(nn.Module):
    """One signature for all modules, so that symbolic dimensions have one form."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.module(*inputs)


def export(
    module: nn.Module, name: str, path: Path, opset: int, small: bool, by: Exporter
) -> None:
    """Trace `module` at the sizes TRACED and save it without traces of this machine."""
    model = find(name)
    variant = model.variant(small)
    arrays = seeded_inputs(name, small, sizes=TRACED)
    traced = tuple(torch.from_numpy(array) for array in arrays.values())
    options: dict[str, Any] = {
        "opset_version": opset,
        "input_names": list(arrays),
        "output_names": list(model.outputs),
        "dynamo": by == "dynamo",
    }
    wrapped = Positional(module).eval()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        if by == "dynamo":
            shapes = (tuple(symbolic_dims(variant).values()),)
            program = torch.onnx.export(
                wrapped, traced, dynamic_shapes=shapes, verbose=False, **options
            )
            assert program is not None
            proto = program.model_proto
        else:
            file = str(Path(folder) / "traced.onnx")
            axes = symbolic_dims(variant)
            torch.onnx.export(wrapped, traced, file, dynamic_axes=axes, **options)
            proto = onnx.load(file)
    save(proto, path)


def symbolic_dims(variant: Variant) -> dict[str, dict[int, str]]:
    """{input: {axis: name}} of the symbolic dimensions."""
    return {
        value.name: {
            axis: dim for axis, dim in enumerate(value.dims) if isinstance(dim, str)
        }
        for value in variant.inputs
    }


def save(proto: onnx.ModelProto, path: Path) -> None:
    """Save at once or not at all, without the source lines an exporter notes."""
    for part in (proto, proto.graph, *proto.graph.node, *proto.graph.initializer):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        value.ClearField("doc_string")
        value.ClearField("metadata_props")
    partial = path.with_name(path.name + ".partial")
    onnx.save(proto, partial)
    onnx.checker.check_model(str(partial), full_check=True)
    os.replace(partial, path)


def verify(module: nn.Module, path: Path, inputs: Arrays) -> None:
    """ONNX Runtime on the file against PyTorch; ModelError says what differs.

    Output dimensions that an exporter froze by mistake become unknown.
    """
    with quiet(), torch.no_grad():
        outputs = module(*(torch.from_numpy(array) for array in inputs.values()))
    expected = outputs if isinstance(outputs, tuple) else (outputs,)
    references = [tensor.numpy() for tensor in expected]
    relax_frozen_dims(path, [reference.shape for reference in references])
    session = onnxruntime.InferenceSession(
        str(path), providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_outputs()]
    got = [np.asarray(array) for array in session.run(names, dict(inputs))]
    for name, mine, reference in zip(names, got, references, strict=True):
        limit = AGREEMENT * float(np.abs(reference).max())
        difference = float(np.abs(mine - reference).max())
        if not difference <= limit or reference.std() < limit:
            raise ModelError(
                f"output {name} differs from PyTorch's by {difference:.1e}, "
                f"more than {limit:.1e}, or is constant",
                where=str(path),
            )


def relax_frozen_dims(path: Path, shapes: Sequence[tuple[int, ...]]) -> None:
    """Make dimensions unknown that contradict the real output `shapes`.

    torch.export notes a GRU's frames as the traced number, though its nodes take any.
    """
    proto = onnx.load(path)
    frozen = [
        dim
        for value, shape in zip(proto.graph.output, shapes, strict=True)
        for dim, size in zip(value.type.tensor_type.shape.dim, shape, strict=True)
        if dim.HasField("dim_value") and dim.dim_value != size
    ]
    if frozen:
        for dim in frozen:
            dim.Clear()
        proto.graph.ClearField("value_info")  # as wrong inside as at the outputs
        save(proto, path)


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Keep the exporters' remarks off the terminal; errors still raise."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
