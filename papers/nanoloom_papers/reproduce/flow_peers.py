"""Who runs the networks of the dataflow paper, beside nanoloom and readers of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from nanoloom.errors import Error
from nanoloom_papers.reproduce.array_files import Array
from nanoloom_papers.reproduce.contenders import PEERS, Peer
from nanoloom_papers.reproduce.jobs import Job, Ready, missing

HERE = "nanoloom_papers.reproduce.flow_peers"
PLAIN = Peer("plain", "plain loops", (), f"{HERE}:plain")
TRIALS = 24  # schedules that TVM may try for a network: two minutes of a whole run


def peers(tvm: str = "") -> tuple[Peer, ...]:
    """All that are compared with; tvm: the Python that has it, "" for this one."""
    packages = () if tvm else ("tvm",)
    readers = [peer for peer in PEERS if peer.key in ("openvino", "onnxruntime")]
    return (
        PLAIN,
        *readers,
        Peer("tvm", "TVM", packages, f"{HERE}:tvm_untuned", python=tvm),
        Peer("tvm-tuned", "TVM, tuned", packages, f"{HERE}:tvm_tuned", python=tvm),
    )


def plain(job: Job) -> Ready:
    """nanoloom's loops as they are, vectors left to LLVM."""
    import nanoloom
    from nanoloom.cache import Cache
    from nanoloom.options import CompileOptions
    from nanoloom.target.cached_host import from_dict
    from nanoloom_papers.affine.strategies import strategy_named

    target = from_dict(dict(job.facts["target"]))
    program = nanoloom.compile(
        job.model,
        threads=job.threads,
        options=CompileOptions(target, strategy=strategy_named("plain")),
        cache=Cache(Path(job.facts["cache"])),
    )
    variant = program.variant(job.feeds)
    inputs = [job.feeds[x.name] for x in variant.library.inputs]
    outputs = variant.library.new_outputs()

    def run() -> list[Array]:
        variant.instance.run(inputs, outputs)
        return outputs

    return Ready(f"plain loops by nanoloom {nanoloom.__version__}", run, run)


def tvm_untuned(job: Job) -> Ready:
    """TVM as it compiles a model that nothing was tried for."""
    return tvm(job, lambda package, module, target: module)


def tvm_tuned(job: Job) -> Ready:
    """TVM behind a bounded number of trials; what it finds is kept in the cache."""

    def tuned(package: Any, module: Any, target: Any) -> Any:
        passes = package.relax.get_pipeline(
            "static_shape_tuning",
            target=target,
            total_trials=TRIALS,
            work_dir=str(Path(job.facts["cache"]) / "tvm"),
        )
        return passes(module)

    return tvm(job, tuned)


def tvm(job: Job, tune: Callable[[Any, Any, Any], Any]) -> Ready:
    """TVM's compiler on an ONNX file.

    facts, given: target, whose CPU is named to it; cache.
    """
    try:
        import onnx

        package: Any = import_module("tvm")
        reader: Any = import_module("tvm.relax.frontend.onnx")
    except ImportError:
        raise missing("TVM", "'apache-tvm[meta-schedule,popen-pool]' onnx") from None
    cpu = job.facts["target"]["cpu"]
    words = {"kind": "llvm", "mcpu": cpu, "num-cores": job.threads}
    target = package.target.Target(words)
    module = reader.from_onnx(onnx.load(job.model), keep_params_in_input=False)
    with target:
        module = tune(package, module, target)
    compiled = package.compile(module, target=target)
    machine = package.relax.VirtualMachine(compiled, package.cpu())
    (image,) = job.feeds.values()
    given = package.runtime.tensor(np.ascontiguousarray(image))

    def run() -> Any:
        return machine["main"](given)

    def outputs() -> list[Array]:
        made = run()
        if isinstance(made, package.runtime.Tensor):
            return [made.numpy()]
        raise Error("it gives no tensor")

    return Ready(f"TVM {package.__version__}", run, outputs)
