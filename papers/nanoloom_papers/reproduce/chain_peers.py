"""Chains of matrix products in the libraries that read no ONNX files.

oneDNN is called through PyTorch's operators with weights that it packed before, as
`torch.compile` does it; PyTorch is what its user types.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from nanoloom.errors import Unsupported
from nanoloom_papers.reproduce.array_files import BFLOAT16, Array
from nanoloom_papers.reproduce.jobs import Job, Ready, missing

Step = Callable[[Any], Any]


def import_torch(threads: int) -> Any:
    """PyTorch with so many threads; raises Error where there is none."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise missing("PyTorch", "torch") from None
    torch.set_num_threads(threads)
    return torch


def onednn(job: Job) -> Ready:
    """oneDNN, bias and ReLU fused, weights packed."""
    torch = import_torch(job.threads)
    if job.task == "bf16-flat":
        raise Unsupported("packs weights before, so they must be constant")
    make = integer_step if job.task == "int8" else packed_step
    steps = [make(torch, job, index) for index in range(job.facts["layers"])]
    words = torch.__config__.show().split()
    index = words.index("MKL-DNN") if "MKL-DNN" in words else -1
    release = words[index + 1] if index >= 0 else ""
    return chain(torch, f"oneDNN {release}".strip(), job, steps)


def packed_step(torch: Any, job: Job, index: int) -> Step:
    """act(x @ w + b) in f32 or bf16."""
    weight, bias = parameters(torch, job, index)
    ops = torch.ops.mkldnn
    packed = ops._reorder_linear_weight(weight.t().contiguous(), job.facts["rows"])
    act = "relu" if job.facts["activated"] else "none"
    return lambda x: ops._linear_pointwise(x, packed, bias, act, [], "")


def integer_step(torch: Any, job: Job, index: int) -> Step:
    """u8 to u8 by s8 weights, a scale for each column."""
    numbers, facts = job.numbers, job.facts
    ops = torch.ops.onednn
    weight = torch.from_numpy(numbers[f"w{index}"])
    columns = weight.shape[1]
    packed = ops.qlinear_prepack(weight.t().contiguous(), list(numbers["x"].shape))
    scales = torch.full((columns,), facts["weight_scales"][index])
    zeros = torch.zeros(columns, dtype=torch.int32)
    bias = numbers.get(f"b{index}")
    bias = None if bias is None else torch.from_numpy(bias)
    act = "relu" if facts["activated"] else "none"
    scale, zero = facts["scales"][index], 0 if index == 0 else facts["zeros"][index - 1]
    made, point = facts["scales"][index + 1], facts["zeros"][index]
    return lambda x: ops.qlinear_pointwise(
        x, scale, zero, packed, scales, zeros, bias, made, point, torch.uint8,
        act, [], "",
    )  # fmt: skip


def pytorch(job: Job) -> Ready:
    """addmm and relu, one after the other."""
    torch = import_torch(job.threads)
    if job.task == "int8":
        raise Unsupported("has no product with scales for int8 but oneDNN's")

    def step(index: int) -> Step:
        weight, bias = parameters(torch, job, index)
        act = torch.relu if job.facts["activated"] else (lambda x: x)
        if bias is None:
            return lambda x: act(torch.mm(x, weight))
        return lambda x: act(torch.addmm(bias, x, weight))

    steps = [step(index) for index in range(job.facts["layers"])]
    return chain(torch, f"PyTorch {version('torch').partition('+')[0]}", job, steps)


def parameters(torch: Any, job: Job, index: int) -> tuple[Any, Any]:
    """The weight and, or None, the bias of a layer; in bf16 where that is computed."""
    found = [job.numbers.get(f"{name}{index}") for name in "wb"]
    made = [None if array is None else as_torch(torch, array) for array in found]
    if job.task == "mixed":
        made = [None if x is None else x.bfloat16() for x in made]
    return made[0], made[1]


def as_torch(torch: Any, array: Array) -> Any:
    """A tensor on the same memory."""
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def as_numpy(torch: Any, x: Any) -> Array:
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(BFLOAT16)
    return x.numpy()


def chain(torch: Any, name: str, job: Job, steps: list[Step]) -> Ready:
    x = as_torch(torch, job.numbers["x"])
    if job.task == "mixed":
        x = x.bfloat16()

    def run() -> Any:
        with torch.inference_mode():
            value = x
            for step in steps:
                value = step(value)
            return value

    return Ready(name, run, lambda: [as_numpy(torch, run())])


def openblas(job: Job) -> Ready:
    """OpenBLAS through numpy, into arrays that are there already.

    Its threads are those of OPENBLAS_NUM_THREADS, which is read when numpy starts.
    """
    if job.task != "f32":
        raise Unsupported("numpy has no products of bf16 or int8 in it")
    numbers, facts = job.numbers, job.facts
    layers = [
        (numbers[f"w{index}"], numbers.get(f"b{index}"))
        for index in range(facts["layers"])
    ]
    results = [
        np.empty((facts["rows"], weight.shape[1]), np.float32) for weight, _ in layers
    ]

    def run() -> Array:
        value = numbers["x"]
        for (weight, bias), result in zip(layers, results, strict=True):
            np.matmul(value, weight, out=result)
            if bias is not None:
                np.add(result, bias, out=result)
            if facts["activated"]:
                np.maximum(result, 0, out=result)
            value = result
        return value

    return Ready(openblas_name(job.threads), run, lambda: [run()])


def openblas_name(threads: int) -> str:
    """OpenBLAS and its version; raises Unsupported where numpy uses another library."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for path in folder.glob("*openblas*"):
        library = ctypes.CDLL(str(path))
        config, count = (
            getattr(library, f"scipy_openblas_{what}64_", None)
            for what in ("get_config", "get_num_threads")
        )
        if config is None or count is None:
            continue
        config.restype = ctypes.c_char_p
        words = config().decode().split()
        if count() != threads:
            raise Unsupported(f"runs {count()} threads, not {threads}")
        return " ".join(words[:2])
    raise Unsupported("numpy is built without a library of OpenBLAS")
