"""A program as a static executable: it runs on a machine that has nothing but Linux."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nanoloom import __version__
from nanoloom.binary.assemble import Compiled
from nanoloom.binary.c_strings import c_string
from nanoloom.binary.elf import Machine, empty_object, with_room
from nanoloom.binary.libc import PARTS, c_library, musl_triple
from nanoloom.binary.link import (
    EXECUTABLE,
    PARAMETER_SCRIPT,
    Source,
    compile_c,
)
from nanoloom.binary.output_files import refusing, replaced
from nanoloom.binary.program_data import PARAMETER_SYMBOL, PROGRAM_SOURCES
from nanoloom.binary.toolchain import Run
from nanoloom.cache import Cache
from nanoloom.interface.vocabulary import NO_STRINGS, Strings
from nanoloom.target.by_name import aliases_of
from nanoloom.target.facts import Target

STACK_BYTES = 128 * 1024  # in each thread: a kernel's frames and the C around them
SOURCES = (
    "main",
    "arguments",
    "counted",
    "growth",
    "refusal",
    "isa",
    "trial",
    "whole",
    "tensors",
    "npy",
    "results",
    "reports",
    "times",
    "given_sizes",
    "sizes",
    *PROGRAM_SOURCES,
    "threads",
    "pool",
    "arena",
    "cpus",
    "conversions",
)
_FLAGS = (
    "-static",
    "--build-id=none",  # the same objects make the same file
    "--strip-debug",  # names stay: they tell a profiler which kernel it is in
    "--gc-sections",
    "-z",
    "noexecstack",
)
# What LLVM's name of a CPU with AVX2 brings beside the vectors.
_BESIDE_AVX2 = frozenset({"avx", "bmi", "bmi2", "lzcnt", "movbe", "popcnt"})


@dataclass(frozen=True)
class Identity:
    """What an executable or a library says of itself.

    digest: of the model's files.  strings: that its code has numbers for.
    """

    model: str
    digest: str
    target: Target
    precision: str
    strings: Strings = NO_STRINGS


def write_executable(
    compiled: Compiled, output: Path, identity: Identity, *, cache: Cache
) -> None:
    """A static executable with the parameters inside.

    `output` appears whole or not at all.  The first one for a machine takes longer:
    the C library is built.

    Raises:
        Error: ziglang is missing, a kernel is defined twice, or the disk refuses.
    """
    size = compiled.parameters.size
    triple = identity.target.triple
    library = c_library(triple, cache)
    there = {source.name for source in compiled.levels}
    sources = [
        *compiled.levels,
        *(() if compiled.levels else (Source("identity", identity_c(identity)),)),
        *(Source.of_runtime(name) for name in SOURCES if name not in there),
    ]
    runtime = compile_c(sources, triple=musl_triple(triple), cache=cache)
    objects = [*runtime, *compiled.table_objects(runtime[0]), *compiled.objects]
    code = cache.in_draft(lambda scratch: _linked(objects, library, size, scratch))
    with refusing(output), replaced(output, EXECUTABLE) as file:
        file.write(with_room(code, size) if size else code)
        if size:
            compiled.parameters.append_to(file)


def needed(target: Target) -> tuple[str, ...]:
    """The features, by LLVM's names, without which the code cannot run.

    The length of RISC-V's vectors is no feature here: Identity has it as a number.
    """
    named = {x for x in target.extensions if not x.startswith("zvl")}
    if "avx2" in named:
        named |= _BESIDE_AVX2
    off = {x[1:] for x in target.features.split(",") if x.startswith("-")}
    return tuple(sorted(named - off))


def identity_c(identity: Identity, level: str = "") -> str:
    """C source that defines `nanoloom_identity`, to be compiled beside identity.h.

    level: behind the names of one of several, whose names are `levels`.
    """
    vector = identity.target.vector
    lengths = (0, 0)
    if vector.scalable:
        lengths = (vector.min_bits, vector.bits * vector.vscale_max)
    bits = {name: f"{word}, {bit}" for name, word, bit in identity.target.isa.hwcaps}
    names = needed(identity.target)
    aliases = "".join(f"{c_string(x)}, " for x in aliases_of(identity.target))
    features = "".join(f"{{{c_string(x)}, {bits.get(x, '0, 0')}}}, " for x in names)
    return "\n".join(
        [
            "/* Written by nanoloom: what this executable is. */",
            '#include "identity.h"',
            "",
            f"static const char *const aliases{level}[] = {{{aliases}0}};",
            f"static const struct nanoloom_feature features{level}[] ="
            f" {{{features}{{0, 0, 0}}}};",
            "",
            f"const struct nanoloom_identity nanoloom_identity{level} = {{",
            f"    .model = {c_string(identity.model)},",
            f"    .digest = {c_string(identity.digest)},",
            f"    .version = {c_string(__version__)},",
            f"    .target = {c_string(identity.target.name)},",
            f"    .aliases = aliases{level},",
            f"    .precision = {c_string(identity.precision)},",
            f"    .features = features{level},",
            f"    .vector_bits_least = {lengths[0]},",
            f"    .vector_bits_most = {lengths[1]},",
            f"    .stack_bytes = {STACK_BYTES},",
            "    .levels = levels," if level else "",
            "};",
            "",
        ]
    )


def _linked(
    objects: Sequence[bytes], library: Sequence[bytes], size: int, scratch: Path
) -> bytes:
    """The executable without its parameters, for which there is room in its memory."""
    names = [f"{number}.o" for number in range(len(objects))]
    files = dict(zip([*names, *PARTS], [*objects, *library], strict=True))
    if size:
        machine = Machine.of(objects[0][:64])
        files["parameters.o"] = empty_object(machine, PARAMETER_SYMBOL, size)
        files["parameters.ld"] = PARAMETER_SCRIPT.encode()
    for name, code in files.items():
        (scratch / name).write_bytes(code)
    words = ["ld.lld", *_FLAGS, "-o", "made", *files]
    Run(words, "linking the executable", scratch).wait()
    return (scratch / "made").read_bytes()
