"""A program for machines without an operating system: an object and its header.

It calls nothing but memcpy and its kin, allocates nothing and has no thread: the caller
gives it memory, whose size the header tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nanoloom.binary.assemble import Compiled
from nanoloom.binary.header import c_name, describe
from nanoloom.binary.header_guard import guard
from nanoloom.binary.link import RUNTIME, Source
from nanoloom.binary.object_symbols import wanted
from nanoloom.binary.program_data import PROGRAM_SOURCES
from nanoloom.binary.relocatable import Part
from nanoloom.binary.table import ProgramTable
from nanoloom.cache import Cache
from nanoloom.errors import Unsupported
from nanoloom.interface.data_dependent_outputs import require_static
from nanoloom.target.facts import Target

SOURCES = ("bare", *PROGRAM_SOURCES, "conversions")
# What every C compiler asks of a machine without a C library, too.
# .TOC. is no function: linkers define it, on PowerPC.
PROVIDED = frozenset({"memcpy", "memmove", "memset", "memcmp", ".TOC."})
_LINE, _POINTER = 64, 8

_TEMPLATE = """\
/* {title}: a model compiled by nanoloom for {target}, for machines without an operating
 * system.
 *
{description}
 *
 * All tensors are dense and row-major.  Their memory is the caller's and needs no more
 * than the natural alignment of its elements; inputs and outputs must not overlap.
 *
 *     static _Alignas(64) char workspace[NANOLOOM_{upper}_WORKSPACE];
 *     const void *inputs[] = {{{inputs}}};
 *     void *outputs[] = {{{outputs}}};
 *     int status = nanoloom_{name}_run(inputs, outputs, workspace);
 *
 * The object calls memcpy, memmove, memset and memcmp, which a compiler asks of every
 * machine, and nothing else.
 */
{guard}

{types}
#define NANOLOOM_{upper}_INPUTS {input_count}
#define NANOLOOM_{upper}_OUTPUTS {output_count}

/* Bytes of working memory, aligned to 64 bytes, and of stack at most. */
#define NANOLOOM_{upper}_WORKSPACE {workspace}
#define NANOLOOM_{upper}_STACK {stack}

#ifdef __cplusplus
extern "C" {{
#endif

/* Runs the model: reads {input_count} inputs and writes {output_count} outputs, in the
 * order above.  `workspace` belongs to this call alone, and need not be cleared; what
 * has one of its own may run at once.  Returns NANOLOOM_OK (0), NANOLOOM_NULL_POINTER,
 * NANOLOOM_MISALIGNED or NANOLOOM_OUT_OF_RANGE. */
int nanoloom_{name}_run(const void *const *inputs, void *const *outputs,
                        void *workspace);

/* Name, element type and shape of input or output number `index`; NULL past the end. */
const struct nanoloom_tensor *nanoloom_{name}_input(int32_t index);
const struct nanoloom_tensor *nanoloom_{name}_output(int32_t index);

#ifdef __cplusplus
}}
#endif

#endif
"""
STACK_BYTES = 64 * 1024


def write_bare(
    compiled: Compiled,
    output: Path,
    model_name: str,
    target: Target,
    *,
    cache: Cache,
    digest: str = "",
) -> Path:
    """An object, or an archive for an output that ends in .a; and its header.

    The header has the name of `output` with the suffix .h and is returned.  Both files
    appear whole or not at all.

    Raises:
        Unsupported: a kernel calls a function of the C library, or the shape of an
            output depends on data, or a size that has no bound.
        Error: ziglang is missing or the disk refuses.
    """
    for room in compiled.table.rooms:
        raise Unsupported(
            "the data decide about a size that has no bound, and a bare object has no "
            "memory that grows with it",
            where=room.where,
            hint="compile an executable or a library, or give it a bound, as with Min",
        )
    require_static([x.name for x in compiled.table.outputs])
    name = c_name(model_name)
    defines = (f"NANOLOOM_MODEL={name}", "NANOLOOM_SINGLE_THREAD")
    sources = [Source.of_runtime(each, *defines) for each in SOURCES]
    part = Part(compiled, name, ("run", "input", "output"))
    code = part.linked(sources, target.triple, cache, ("-ffreestanding",))
    require_alone(code)
    header = header_h(compiled.table, model_name, target, digest)
    return part.write(code, output, header)


def require_alone(code: bytes) -> None:
    """Unsupported if an object wants more than a compiler may call by itself."""
    missing = sorted(wanted(code) - PROVIDED)
    if missing:
        raise Unsupported(
            f"its kernels call {', '.join(missing)} of the C library",
            hint="compile an executable or a library instead",
        )


def workspace_bytes(table: ProgramTable) -> int:
    """What nanoloom_workspace_bytes gives for one thread."""
    pointers = _POINTER * len(table.buffers)
    scratch = max(table.scratch_bytes, table.alone_bytes)
    return sum(map(_lines, (table.arena_bytes, pointers, _POINTER))) + scratch


def _lines(size: int) -> int:
    return -(-size // _LINE) * _LINE


def header_h(table: ProgramTable, model_name: str, target: Target, digest: str) -> str:
    """The text of the header, for C and C++."""
    name = c_name(model_name)
    lines = [*describe("input", table.inputs), *describe("output", table.outputs)]
    return _TEMPLATE.format(
        title=name,
        target=target.name,
        name=name,
        upper=name.upper(),
        guard=guard(name, digest, lines),
        description="\n".join(lines) or " * It has no inputs and no outputs.",
        inputs=_names("input", table.inputs),
        outputs=_names("output", table.outputs),
        types=(RUNTIME / "types.h").read_text("utf-8"),
        input_count=len(table.inputs),
        output_count=len(table.outputs),
        workspace=workspace_bytes(table),
        stack=STACK_BYTES,
    )


def _names(kind: str, tensors: Sequence[object]) -> str:
    return ", ".join(f"{kind}_{i}" for i in range(len(tensors))) or "0"
