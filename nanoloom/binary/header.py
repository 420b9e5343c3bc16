"""The C header of a compiled model: one self-contained file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nanoloom.binary.c_strings import c_comment
from nanoloom.binary.cpp_functions import functions
from nanoloom.binary.grown_header import NO_ROOM, grown
from nanoloom.binary.header_guard import guard
from nanoloom.binary.link import RUNTIME
from nanoloom.binary.sizes import SizesTable
from nanoloom.binary.sizes_header import described, extents, sized
from nanoloom.binary.table import ProgramTable
from nanoloom.interface.tensor import Tensor

# As the public functions are named: nanoloom_MODEL_create.
_TEMPLATE = """\
/* {title}: a model compiled by nanoloom.
 *
{description}
 *
{memory_of_tensors}
 *
 *     struct nanoloom_{name} *model = nanoloom_{name}_create(0);
{resizing} *     const void *inputs[] = {{{inputs}}};
{running} *     if (status) puts(nanoloom_{name}_error(status));
 *     nanoloom_{name}_destroy(model);
 */
{guard}

{types}
#define NANOLOOM_{upper}_INPUTS {input_count}
#define NANOLOOM_{upper}_OUTPUTS {output_count}
{sizes}
#ifdef __cplusplus
extern "C" {{
#endif

/* A model ready to run: threads, which all handles share, and working memory,
 * {memory}, whose
 * stacks may be as small as 64 KiB.  The parameters lie in the library, once for all
 * handles. */
struct nanoloom_{name};

/* A handle whose runs use `threads` threads, the caller's among them; 0 chooses by the
 * CPUs that this process may use (affinity, cgroup quota, OMP_NUM_THREADS).  NULL when
 * `threads` is below 0 or above 1024, or memory is out{tiles}.  Results do not depend
 * on the number.  As many threads compute at once, of all handles, as the process may
 * use CPUs, or as the most that a handle asked for; of more runs at once, some wait. */
struct nanoloom_{name} *nanoloom_{name}_create(int threads);

/* The same, on a thread pool of the caller's: see nanoloom_parallel; NULL without one.
 * It has memory for as many threads as create(0) would start; of more, some wait. */
struct nanoloom_{name} *nanoloom_{name}_create_on(nanoloom_parallel parallel,
                                                  void *context);

/* What a handle's runs take their threads from, and `*parallel`, for create_on of other
 * models: their handles are destroyed first.  A run that finds the threads at work for
 * another does its tasks alone.  Of a NULL handle both are NULL. */
void *nanoloom_{name}_pool(struct nanoloom_{name} *handle, nanoloom_parallel *parallel);

/* From now on a run of the handle takes so many nanoseconds at most, 0 for as long as
 * it takes, and ends where `*cancelled` is not 0 any more, NULL for nobody's word: any
 * thread may write it.  What ended early returns NANOLOOM_LATE or NANOLOOM_CANCELLED,
 * and left outputs that mean nothing; the next run is like any other.  No thread may be
 * running the handle. */
void nanoloom_{name}_limit(struct nanoloom_{name} *handle, int64_t nanoseconds,
                           const volatile int32_t *cancelled);

{run}{resize}
/* Frees a handle that no thread runs; NULL is allowed. */
void nanoloom_{name}_destroy(struct nanoloom_{name} *handle);

/* Name, element type and shape of input or output number `index`; NULL past the end. */
const struct nanoloom_tensor *nanoloom_{name}_input(int32_t index);
const struct nanoloom_tensor *nanoloom_{name}_output(int32_t index);

/* What a status means, as an English sentence. */
const char *nanoloom_{name}_error(int status);

/* What the status of the handle's last run means: the same, and for
 * NANOLOOM_OUT_OF_RANGE the node of the model, the index and the range it must lie
 * in{wrong}.
 * Writes at most `bytes` bytes, the zero at the end among them; returns the length of
 * the whole sentence, as snprintf does.  No thread may be running the handle. */
int nanoloom_{name}_explain(const struct nanoloom_{name} *handle, int status,
                            char *text, size_t bytes);

#ifdef __cplusplus
}}

{functions}
#endif

#endif
"""

_MEMORY = """\
 * All tensors are dense and row-major.  Their memory is the caller's and needs no more
 * than the natural alignment of its elements; inputs and outputs must not overlap."""
_RUNNING = """\
 *     void *outputs[] = {{{outputs}}};
 *     int status = nanoloom_{name}_run(model, inputs, outputs);
"""
_RUN = """\
/* Runs the model: reads {input_count} inputs and writes {output_count} outputs, in the
 * order above.  Returns NANOLOOM_OK (0) or another nanoloom_status.  Threads may run
 * handles of their own at once; a handle that runs already returns NANOLOOM_BUSY. */
int nanoloom_{name}_run(struct nanoloom_{name} *handle, const void *const *inputs,
                        void *const *outputs);
"""

# What `explain` says of a model with sizes besides.
_WRONG_SIZES = """;
 * for NANOLOOM_WRONG_SIZES of the last resize the size and its bounds"""

# Of a model with outputs whose shapes depend on data.
_COUNTED = """
/* Output number `index` with the shape that the last run gave it, until the next one;
 * NULL past the end, and where that run did not return NANOLOOM_OK.  The memory of an
 * output has room for the largest shape; what was found is dense at its beginning. */
const struct nanoloom_tensor *nanoloom_{name}_output_of(
    const struct nanoloom_{name} *handle, int32_t index);
"""

# The same, where sizes are chosen and `output_of` is there for their sake.
_COUNTED_OF_SIZES = """
/* Behind a run that returned NANOLOOM_OK, nanoloom_{name}_output_of gives outputs whose
 * shapes depend on the data with those that the run found, until the next one; their
 * memory has room for the shape given before, and what was found is dense at its
 * beginning. */
"""

# Names that nanoloom_MODEL would share with the types and functions of the runtime.
_TAKEN = """
    arena arguments beside bf16 bind buffer call check contradiction control counted
    default element failed feature fit floating floor given growth half identity
    kept kernel level levels library made member memory move nanoseconds now number
    outside owner parallel parameter path pool program range refusal refuse repeat
    request resolve results room rows run scratch sizes slice slices space status step
    stopped task tensor term ticks times tried way words workspace
"""


def c_name(model_name: str) -> str:
    """A model's name as part of a C name: `bert-base.v2` -> `bert_base_v2`.

    A character outside of ASCII is its code: `größe` -> `gr_u00f6_u00df_e`, so that no
    two such names are one.  A digit may come first, since `nanoloom_` stands before it.
    """
    plain = "".join(c if c.isascii() else f"_u{ord(c):04x}_" for c in model_name)
    name = re.sub(r"[^0-9A-Za-z]+", "_", plain).strip("_") or "model"
    return f"{name}_model" if name.lower().split("_")[0] in _TAKEN.split() else name


def header_h(
    table: ProgramTable, model_name: str, *, refuses: bool = False, digest: str = ""
) -> str:
    """The text of MODEL.h, for C and C++: every function, name, shape and type."""
    name = c_name(model_name)
    lines = [
        *describe("input", table.given, table.sizes),
        *describe("output", table.made, table.sizes),
        *describe_numbers(table),
        *describe_rooms(table),
        *describe("keeps", kept(table), table.sizes),
    ]
    tiles = ", or the system grants no AMX tile registers" if table.needs_tiles else ""
    if refuses:
        tiles += "; or where there is no code\n * for this CPU, stderr says why"
    words = sized(table, name)
    return _TEMPLATE.format(
        title=c_comment(model_name),
        name=name,
        upper=name.upper(),
        guard=guard(name, digest, lines),
        description="\n".join(lines) or " * It has no inputs and no outputs.",
        inputs=", ".join(f"input_{i}" for i in range(len(table.given))) or "0",
        types=(RUNTIME / "types.h").read_text("utf-8"),
        input_count=len(table.given),
        output_count=len(table.made),
        functions=functions(table, name),
        memory=memory(table),
        tiles=tiles,
        wrong=wrong_words(table),
        **(words | {"resize": words["resize"] + counted_words(table, name)}),
        **run_words(table, name),
    )


def run_words(table: ProgramTable, name: str) -> dict[str, str]:
    """What is said of a run, and of the memory that it writes."""
    given, made = len(table.given), len(table.made)
    if table.rooms:
        return grown(name, given, made)
    outputs = ", ".join(f"output_{i}" for i in range(made)) or "0"
    return {
        "memory_of_tensors": _MEMORY,
        "running": _RUNNING.format(name=name, outputs=outputs),
        "run": _RUN.format(name=name, input_count=given, output_count=made),
    }


def wrong_words(table: ProgramTable) -> str:
    """What `explain` says besides."""
    sized = bool(table.sizes and table.sizes.chosen)
    return (_WRONG_SIZES if sized else "") + (NO_ROOM if table.rooms else "")


def kept(table: ProgramTable) -> Sequence[Tensor]:
    """The outputs that a session keeps."""
    return table.outputs[len(table.made) :] if table.kept else ()


def counted_words(table: ProgramTable, name: str) -> str:
    """What is said of outputs whose shapes depend on data, where there are any."""
    if not table.numbers or table.rooms:
        return ""
    return (_COUNTED_OF_SIZES if table.sizes else _COUNTED).format(name=name)


def memory(table: ProgramTable) -> str:
    """How much a handle has, in words."""
    if table.kept:
        return (
            "as much as the largest of its sizes asked for, and what is kept of tokens"
        )
    if table.sizes:
        return "as much as the largest of its sizes asked for, for all of its threads"
    bytes, more = table.arena_bytes + table.alone_bytes, table.scratch_bytes
    return f"about {bytes} bytes, and {more} more for each of its threads"


def describe(
    kind: str, tensors: Sequence[Tensor], sizes: SizesTable | None = None
) -> list[str]:
    """Lines of a comment: name, type, shape and size of each."""
    return [
        f" * {kind} {index}: {c_comment(tensor.name)}, {tensor.element.name.lower()}"
        f"{c_comment(described(tensor, sizes))}"
        for index, tensor in enumerate(tensors)
    ]


def describe_numbers(table: ProgramTable) -> list[str]:
    """Lines of a comment: the axes that depend on data."""
    rooms, lines = room_names(table), list[str]()
    for x in table.numbers:
        most = c_comment(extents(table.outputs[x.output], table.sizes)[x.axis])
        bound = "" if any(name in most for name in rooms) else f", at most {most}"
        lines.append(f" * axis {x.axis} of output {x.output}: as the data say{bound}")
    return lines


def describe_rooms(table: ProgramTable) -> list[str]:
    """Lines of a comment: the sizes about which only the data decide."""
    pairs = zip(room_names(table), table.rooms, strict=True)
    return [f" * {x}: as the data say, at {c_comment(room.where)}" for x, room in pairs]


def room_names(table: ProgramTable) -> Sequence[str]:
    """The sizes that are rooms."""
    return (
        table.sizes.dims[len(table.sizes.chosen) :]
        if table.rooms and table.sizes
        else ()
    )
