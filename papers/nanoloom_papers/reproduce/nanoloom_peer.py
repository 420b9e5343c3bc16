"""nanoloom itself as a contender: compiled, on its inputs, into outputs that are there.

In a process of its own like its peers: what is measured is alike for all.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np

import nanoloom
from nanoloom.api.program import Program
from nanoloom.cache import Cache
from nanoloom.emit import emit_stage
from nanoloom.options import CompileOptions
from nanoloom.target.cached_host import from_dict
from nanoloom_papers.reproduce.array_files import Array
from nanoloom_papers.reproduce.jobs import Job, Ready

FAMILY = re.compile(r'family = "([\w-]+)"')
PLAIN = "loops"  # what a kernel without a nanokernel is made of


def open_program(job: Job) -> Ready:
    """Compile for the job's inputs.

    facts, given: target, cache (a folder), lowered (f32 in bf16), exact_conv (no
    Winograd).  facts, answered: seconds, to compile; families, of the contractions'
    nanokernels, if a task is named.
    """
    options = CompileOptions(
        from_dict(dict(job.facts["target"])),
        "bf16" if job.facts.get("lowered") else "f32",
        exact_conv=bool(job.facts.get("exact_conv")),
    )
    feeds = job.feeds
    started = time.perf_counter()
    program = nanoloom.compile(
        job.model,
        threads=job.threads,
        options=options,
        cache=Cache(Path(job.facts["cache"])),
    )
    variant = program.variant(feeds)
    seconds = time.perf_counter() - started
    inputs = [feeds[x.name] for x in variant.library.inputs]
    outputs = variant.library.new_outputs()
    times = np.zeros(len(variant.library.steps), np.int64)

    def run() -> None:
        variant.instance.run(inputs, outputs)

    def results() -> list[Array]:
        run()
        return [array.copy() for array in outputs]

    def steps() -> list[tuple[str, int]]:
        run()  # its data is fetched, and the clock is a program's
        variant.instance.run(inputs, outputs, nanoseconds=times)
        return list(zip(variant.library.steps, times.tolist(), strict=True))

    found = families(program, feeds) if job.task else []
    name = f"nanoloom {nanoloom.__version__}"
    return Ready(name, run, results, {"families": found, "seconds": seconds}, steps)


def families(program: Program, feeds: dict[str, Array]) -> list[str]:
    """The instruction families of the contractions' nanokernels, `loops` for none."""
    found: list[str] = []
    shapes = {name: array.shape for name, array in feeds.items()}

    def look(stage: str, name: str, text: str) -> None:
        del stage
        if name.startswith("contraction"):
            found.extend(FAMILY.findall(text) or [PLAIN])

    emit_stage(program.source.bound(shapes, {}), "schedule", program.options, look)
    return list(dict.fromkeys(found))
