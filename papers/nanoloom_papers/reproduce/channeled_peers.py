"""Who computes the channeled convolution: nanoloom by each schedule, and its peers."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import nanoloom
from nanoloom.binary.toolchain import Run, zig_triple
from nanoloom.cache import Cache
from nanoloom.options import CompileOptions
from nanoloom.target.cached_host import from_dict
from nanoloom.target.facts import Target
from nanoloom_papers.reproduce.array_files import Array
from nanoloom_papers.reproduce.channeled import WINDOW, Convolution, written
from nanoloom_papers.reproduce.channeled_forms import FORMS, tile_of
from nanoloom_papers.reproduce.contenders import Peer
from nanoloom_papers.reproduce.jobs import Job, Ready, missing

HERE = "nanoloom_papers.reproduce.channeled_peers"
OWN = f"{HERE}:open_form"
FORM_PEERS = tuple(Peer(key, key, (), OWN) for key in FORMS)
OTHERS = (
    Peer("halide", "Halide", ("halide",), f"{HERE}:halide"),
    Peer("loops", "C loops", ("ziglang",), f"{HERE}:loops"),
)
OTHER_KEYS = tuple(peer.key for peer in OTHERS)
KERNELS = "contraction_*"
FLAGS = ("-O3", "-ffp-contract=fast", "-shared", "-fPIC", "-nostdlib")
PLAIN_LOOPS = """
void run(const float *restrict image, const float *restrict weights,
         const float *restrict bias, float *restrict relu) {
  for (long n = 0; n < N; n++)
    for (long y = 0; y < Y; y++)
      for (long x = 0; x < X; x++) {
        float *restrict out = relu + ((n * Y + y) * X + x) * C;
        for (long c = 0; c < C; c++) out[c] = bias[c];
        for (long rz = 0; rz < R; rz++)
          for (long ry = 0; ry < R; ry++)
            for (long rx = 0; rx < K; rx++) {
              long at = ((n * (Y + R - 1) + y + rz) * (X + R - 1) + x + ry) * K + rx;
              for (long c = 0; c < C; c++)
                out[c] += weights[((rx * R + rz) * R + ry) * C + c] * image[at];
            }
        for (long c = 0; c < C; c++) out[c] = out[c] > 0 ? out[c] : 0;
      }
}
"""


def sizes_of(job: Job) -> Convolution:
    return Convolution(*job.facts["sizes"])


def target_of(job: Job) -> Target:
    return from_dict(dict(job.facts["target"]))


def options_of(form: str, target: Target) -> CompileOptions:
    """With the schedule of a form; the automatic one for every other word."""
    if form not in FORMS:
        return CompileOptions(target)
    schedule = FORMS[form](tile_of(form, target))
    return CompileOptions(target, schedules=((KERNELS, schedule),))


def open_form(job: Job) -> Ready:
    """nanoloom by the schedule that is the job's task.

    facts, given: sizes, target, cache (a folder).
    """
    program = nanoloom.compile(
        written(sizes_of(job)),
        threads=job.threads,
        options=options_of(job.task, target_of(job)),
        cache=Cache(Path(job.facts["cache"])),
    )
    variant = program.variant(job.numbers)
    inputs = [job.numbers[x.name] for x in variant.library.inputs]
    outputs = variant.library.new_outputs()

    def run() -> None:
        variant.instance.run(inputs, outputs)

    name = f"nanoloom {nanoloom.__version__}"
    return Ready(name, run, lambda: run_into(run, outputs[0]))


def run_into(run: Callable[[], object], output: Array) -> list[Array]:
    """Run, and a copy of what lies in the output then."""
    output[...] = np.nan
    run()
    return [output.copy()]


def halide(job: Job) -> Ready:
    """Halide by the schedule of its own example, for one thread."""
    try:
        import halide as hl  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise missing("Halide", "halide") from None
    sizes, target = sizes_of(job), target_of(job)
    made = halide_target(hl, target)
    # Halide's axes go from the innermost one outwards, and so do its buffers'.
    arrays = [job.numbers[name] for name in sizes.shapes]
    image, weights, bias = map(hl.Buffer, arrays)
    x, y, c, n = (hl.Var(name) for name in ("x", "y", "c", "n"))
    r = hl.RDom([(0, sizes.channels), (0, WINDOW), (0, WINDOW)])
    conv, relu = hl.Func("conv"), hl.Func("relu")
    conv[c, x, y, n] = bias[c]
    conv[c, x, y, n] += weights[c, r.y, r.z, r.x] * image[r.x, x + r.y, y + r.z, n]
    relu[c, x, y, n] = hl.max(0.0, conv[c, x, y, n])
    # Its example's register tiles: 5 x 4 vectors of 32 registers, 4 x 3 of 16.
    many = target.vector.registers >= 32
    schedule_halide(hl, conv, relu, r, made, (4, 5) if many else (3, 4))
    relu.compile_jit(made)
    output = np.empty(sizes.result, np.float32)
    buffer = hl.Buffer(output)

    def run() -> None:
        assert arrays  # the buffers do not keep their memory
        relu.realize(buffer, target=made)

    return Ready(f"Halide {version('halide')}", run, lambda: run_into(run, output))


def schedule_halide(
    hl: Any, conv: Any, relu: Any, r: Any, target: Any, tile: tuple[int, int]
) -> None:
    """The schedule of chapter H, without what it does for threads.

    tile: vectors and pixels.
    """
    lanes, (wide, high) = target.natural_vector_size(hl.Float(32)), tile
    x, y, c, n = (hl.Var(name) for name in ("x", "y", "c", "n"))
    co, ci, xo, xi = (hl.Var(name) for name in ("co", "ci", "xo", "xi"))
    relu.split(c, co, ci, lanes * wide).split(x, xo, xi, high)
    relu.reorder(ci, xi, xo, y, n, co).vectorize(ci, lanes).unroll(ci).unroll(xi)
    conv.compute_at(relu, xo).vectorize(c, lanes).unroll(c).unroll(x).unroll(y)
    update = conv.update().reorder(c, x, y, r.x, r.y, r.z, n)
    update.vectorize(c, lanes).unroll(c).unroll(x).unroll(y).unroll(r.x, 2)


def halide_target(hl: Any, target: Target) -> Any:
    """The same machine as Halide names it: what it finds itself may be switched off."""
    if target.arch != "x86_64":
        return hl.get_jit_target_from_environment()
    host, features = hl.get_host_target(), hl.TargetFeature
    names = [features.JIT, features.SSE41]
    if target.vector.bits >= 256:
        names += [features.AVX, features.F16C, features.FMA, features.AVX2]
    if target.vector.bits >= 512:
        names += [features.AVX512, features.AVX512_Skylake]
    return hl.Target(host.os, host.arch, host.bits, names)


def loops(job: Job) -> Ready:
    """Loops in C, channels innermost so that they can be vectors; clang -O3."""
    sizes, target = sizes_of(job), target_of(job)
    library = compiled_loops(sizes, target)
    arrays = [job.numbers[name] for name in sizes.shapes]
    output = np.empty(sizes.result, np.float32)
    places = [x.ctypes.data_as(ctypes.c_void_p) for x in (*arrays, output)]

    def run() -> None:
        library.run(*places)

    name = f"clang -O3 (zig {version('ziglang')})"
    return Ready(name, run, lambda: run_into(run, output))


def compiled_loops(sizes: Convolution, target: Target) -> ctypes.CDLL:
    """The loops for these sizes, loaded."""
    extents = zip("NYXCKR", (*sizes.result, sizes.channels, WINDOW), strict=True)
    named = ", ".join(f"{name} = {size}" for name, size in extents)
    folder = Path(tempfile.mkdtemp(prefix="nanoloom-"))
    try:
        (folder / "loops.c").write_text(f"enum {{ {named} }};\n{PLAIN_LOOPS}")
        cpu = f"-mcpu={target.cpu.replace('-', '_')}"
        words = ("cc", *FLAGS, cpu, "-target", zig_triple(target.triple))
        Run([*words, "loops.c", "-o", "loops.so"], "compiling loops.c", folder).wait()
        return ctypes.CDLL(str(folder / "loops.so"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
