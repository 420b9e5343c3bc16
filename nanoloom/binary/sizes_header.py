"""What the C header of a model with sizes says of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nanoloom.binary.c_strings import c_comment
from nanoloom.binary.sizes import SizesTable
from nanoloom.binary.sizes_data import axes
from nanoloom.binary.table import ProgramTable
from nanoloom.interface.bounds import UNBOUNDED
from nanoloom.interface.tensor import Tensor

_SIZES = """
/* The model's sizes: nanoloom_{name}_resize takes a number for each, in this order. */
enum {{
{rows}
    NANOLOOM_{upper}_SIZES = {count}
}};
#define NANOLOOM_{upper}_SIZES NANOLOOM_{upper}_SIZES /* for #ifdef */
"""
_RESIZE = """
/* Chooses the sizes of the runs that follow, NANOLOOM_{upper}_SIZES numbers.  It takes
 * microseconds and compiles nothing; {memory}.
 * Returns NANOLOOM_OK, NANOLOOM_WRONG_SIZES or NANOLOOM_NO_MEMORY; whatever is not
 * NANOLOOM_OK leaves the handle as it was.  No run may be under way. */
int nanoloom_{name}_resize(struct nanoloom_{name} *handle, const int64_t *sizes);

/* Input or output number `index` with the handle's sizes in its shape, until they
 * change; NULL past the end, and before the first nanoloom_{name}_resize. */
const struct nanoloom_tensor *nanoloom_{name}_input_of(
    const struct nanoloom_{name} *handle, int32_t index);
const struct nanoloom_tensor *nanoloom_{name}_output_of(
    const struct nanoloom_{name} *handle, int32_t index);
"""
_RESIZE_GROWN = """
/* Chooses the sizes of the runs that follow, NANOLOOM_{upper}_SIZES numbers.  It takes
 * microseconds and compiles nothing; memory grows with them.
 * Returns NANOLOOM_OK, NANOLOOM_WRONG_SIZES or NANOLOOM_NO_MEMORY; whatever is not
 * NANOLOOM_OK leaves the handle as it was.  No run may be under way. */
int nanoloom_{name}_resize(struct nanoloom_{name} *handle, const int64_t *sizes);

/* Input number `index` with the handle's sizes in its shape, until they change; NULL
 * past the end, and before the first nanoloom_{name}_resize. */
const struct nanoloom_tensor *nanoloom_{name}_input_of(
    const struct nanoloom_{name} *handle, int32_t index);
"""
_RESIZE_SESSION = """
/* Chooses the sizes of the runs that follow, NANOLOOM_{upper}_SIZES numbers: how many
 * tokens each of them brings, for one.  It takes microseconds and compiles nothing.
 * Returns NANOLOOM_OK, NANOLOOM_WRONG_SIZES, NANOLOOM_NO_MEMORY, NANOLOOM_FULL, or
 * NANOLOOM_OTHER_TOKENS where a token's keys and values would be of another shape than
 * those that are kept; whatever is not NANOLOOM_OK leaves the handle as it was. */
int nanoloom_{name}_resize(struct nanoloom_{name} *handle, const int64_t *sizes);

/* Input or output number `index` with the shape that it had at the last resize or run;
 * NULL past the end, and before the first nanoloom_{name}_resize. */
const struct nanoloom_tensor *nanoloom_{name}_input_of(
    const struct nanoloom_{name} *handle, int32_t index);
const struct nanoloom_tensor *nanoloom_{name}_output_of(
    const struct nanoloom_{name} *handle, int32_t index);

/* How many tokens the handle keeps.  A run that returns NANOLOOM_OK has added its own
 * behind them, any other none.{most} */
int64_t nanoloom_{name}_length(const struct nanoloom_{name} *handle);

/* Forgets all but the first `length` tokens; 0 begins again.  Returns NANOLOOM_OK, or
 * NANOLOOM_NOT_KEPT where there are fewer. */
int nanoloom_{name}_rewind(struct nanoloom_{name} *handle, int64_t length);

/* Makes room for so many tokens of the sizes chosen last; without it, there is room for
 * {room}.
 * Returns NANOLOOM_OK, NANOLOOM_NO_SIZES, NANOLOOM_FULL or NANOLOOM_NO_MEMORY. */
int nanoloom_{name}_reserve(struct nanoloom_{name} *handle, int64_t tokens);
"""
_EXAMPLE = """\
 *     int64_t sizes[] = {{{sizes}}};
 *     nanoloom_{name}_resize(model, sizes);
"""


def sized(table: ProgramTable, name: str) -> dict[str, str]:
    """The parts of the header that models without sizes do not have."""
    sizes = table.sizes
    if sizes is None or not sizes.chosen:
        return {"sizes": "", "resize": "", "resizing": ""}
    bounds = [sizes.bounds_of(each) for each in sizes.chosen]
    known = all(x.most != UNBOUNDED for x in bounds)
    rows = [
        f"    NANOLOOM_{name.upper()}_SIZE_{word} = {number}, /* {within} */"
        for number, (word, within) in enumerate(
            zip(c_words(sizes.chosen), bounds, strict=True)
        )
    ]
    words = {"name": name, "upper": name.upper(), "count": len(sizes.chosen)}
    if table.kept:
        words |= session_words(sizes)
    memory = "there is memory for all of them" if known else "memory grows with them"
    return {
        "sizes": _SIZES.format(rows="\n".join(rows), **words),
        "resize": resize_text(table).format(memory=memory, **words),
        "resizing": _EXAMPLE.format(
            sizes=c_comment(", ".join(sizes.chosen)), name=name
        ),
    }


def resize_text(table: ProgramTable) -> str:
    """What is said of the functions, with names in braces."""
    if table.rooms:
        return _RESIZE_GROWN
    return _RESIZE_SESSION if table.kept else _RESIZE


def session_words(sizes: SizesTable) -> dict[str, str]:
    """What the functions of a session say of its bound."""
    most = min(sizes.bounds_of(name).most for name in sizes.dims[-sizes.grown :])
    if most == UNBOUNDED:
        return {"most": "", "room": "twice as many whenever it is full"}
    return {
        "most": f"  There are at most {most}:\n * a run that would add more returns"
        " NANOLOOM_FULL.",
        "room": f"{most} from the first run on",
    }


def c_words(names: Sequence[str]) -> list[str]:
    """Names as parts of C names, no two alike: `past_length` -> `PAST_LENGTH`."""
    words = [re.sub(r"[^0-9A-Za-z]+", "_", name).upper() for name in names]
    if len(set(words)) == len(words):
        return words
    return [f"{word}_{number}" for number, word in enumerate(words)]


def described(tensor: Tensor, sizes: SizesTable | None) -> str:
    """A shape, and the bytes where they are known."""
    shape = f"[{', '.join(extents(tensor, sizes))}]"
    is_known = sizes is None or tensor.known == list(tensor.shape)
    return f"{shape}, {tensor.bytes} bytes" if is_known else shape


def extents(tensor: Tensor, sizes: SizesTable | None) -> Sequence[str]:
    """A shape in words."""
    if sizes is None or tensor.known == list(tensor.shape):
        return [*map(str, tensor.shape)]
    return axes(sizes, tensor)
