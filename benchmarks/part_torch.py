"""The parts of an encoder in PyTorch, as its user writes them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from benchmarks.part_models import EPSILON
from nanoloom_papers.reproduce.chain_peers import import_torch
from nanoloom_papers.reproduce.jobs import Job, Ready

Compute = Callable[[Any, dict[str, Any]], Any]  # torch, tensors by name


def ready(job: Job, compute: Compute) -> Ready:
    torch = import_torch(job.threads)
    tensors = {name: torch.from_numpy(a) for name, a in job.numbers.items()}

    def run() -> Any:
        with torch.inference_mode():
            return compute(torch, tensors)

    name = f"PyTorch {version('torch').partition('+')[0]}"
    return Ready(name, run, lambda: [run().numpy()])


def attention(job: Job) -> Ready:
    """scaled_dot_product_attention, which has a kernel of its own."""

    def compute(torch: Any, x: dict[str, Any]) -> Any:
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(x["q"], x["k"], x["v"], attn_mask=x.get("mask"))

    return ready(job, compute)


def softmax(job: Job) -> Ready:
    return ready(job, lambda torch, x: torch.softmax(x["x"], -1))


def layer_norm(job: Job) -> Ready:
    def compute(torch: Any, x: dict[str, Any]) -> Any:
        value = x["x"] + x["r"] if "r" in x else x["x"]
        width = (value.shape[-1],)
        return torch.nn.functional.layer_norm(
            value, width, x["scale"], x["bias"], EPSILON
        )

    return ready(job, compute)


def gelu(job: Job) -> Ready:
    return ready(job, lambda torch, x: torch.nn.functional.gelu(x["x"]))


def gelu_tanh(job: Job) -> Ready:
    def compute(torch: Any, x: dict[str, Any]) -> Any:
        return torch.nn.functional.gelu(x["x"], approximate="tanh")

    return ready(job, compute)


def embedding(job: Job) -> Ready:
    def compute(torch: Any, x: dict[str, Any]) -> Any:
        return torch.nn.functional.embedding(x["ids"], x["table"])

    return ready(job, compute)


def transpose(job: Job) -> Ready:
    """permute, made contiguous: without that it would do nothing."""
    order = tuple(job.facts["order"])
    return ready(job, lambda torch, x: x["x"].permute(order).contiguous())
