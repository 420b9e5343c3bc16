"""What the C header of a model with sizes says of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nanoloom.binary.sizes import SizesTable
from nanoloom.binary.sizes_source import axes
from nanoloom.binary.table import ProgramTable, Tensor
from nanoloom.sizes.bounds import UNBOUNDED

_SIZES = """
/* The model's sizes: nanoloom_{name}_resize takes a number for each, in this order. */
enum {{
{rows}
    NANOLOOM_{upper}_SIZES = {count}
}};
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
_EXAMPLE = """\
 *     int64_t sizes[] = {{{sizes}}};
 *     nanoloom_{name}_resize(model, sizes);
"""


def sized(table: ProgramTable, name: str) -> dict[str, str]:
    """The parts of the header that models without sizes do not have."""
    sizes = table.sizes
    if sizes is None:
        return {"sizes": "", "resize": "", "resizing": ""}
    bounds = [sizes.bounds_of(each) for each in sizes.dims]
    known = all(x.most != UNBOUNDED for x in bounds)
    rows = [
        f"    NANOLOOM_{name.upper()}_SIZE_{word} = {number}, /* {within} */"
        for number, (word, within) in enumerate(
            zip(c_words(sizes.dims), bounds, strict=True)
        )
    ]
    words = {"name": name, "upper": name.upper(), "count": len(sizes.dims)}
    memory = "there is memory for all of them" if known else "memory grows with them"
    return {
        "sizes": _SIZES.format(rows="\n".join(rows), **words),
        "resize": _RESIZE.format(memory=memory, **words),
        "resizing": _EXAMPLE.format(sizes=", ".join(sizes.dims), name=name),
    }


def c_words(names: Sequence[str]) -> list[str]:
    """Names as parts of C names, no two alike: `past_length` -> `PAST_LENGTH`."""
    words = [re.sub(r"[^0-9A-Za-z]+", "_", name).upper() for name in names]
    if len(set(words)) == len(words):
        return words
    return [f"{word}_{number}" for number, word in enumerate(words)]


def described(tensor: Tensor, sizes: SizesTable | None) -> str:
    """A shape, and the bytes where they are known."""
    if sizes is None or tensor.known == list(tensor.shape):
        return f"[{', '.join(map(str, tensor.shape))}], {tensor.bytes} bytes"
    return f"[{', '.join(axes(sizes, tensor))}]"
