"""What the C header of a model says of outputs whose sizes have no bound."""

from __future__ import annotations

_MEMORY = """\
 * All tensors are dense and row-major.  The memory of inputs is the caller's and needs
 * no more than the natural alignment of its elements.  Only the data say how large
 * outputs are: a run allocates them, each at the beginning of a line of cache."""
_RUNNING = """\
 *     void *outputs[NANOLOOM_{upper}_OUTPUTS];
 *     int status = nanoloom_{name}_run_alloc(model, inputs, outputs);
 *     if (!status) use(nanoloom_{name}_output_of(model, 0)->shape, outputs[0]);
 *     nanoloom_{name}_free_outputs(outputs);
"""
_RUN = """\
/* Runs the model: reads {input_count} inputs, allocates and writes {output_count}
 * outputs, in the order above.  Where the memory of the run before is too little, there
 * is more of it and the model runs again.  Returns NANOLOOM_OK (0), or another
 * nanoloom_status and all outputs NULL.  Threads may run handles of their own at once;
 * a handle that runs already returns NANOLOOM_BUSY. */
int nanoloom_{name}_run_alloc(struct nanoloom_{name} *handle,
                              const void *const *inputs, void **outputs);

/* Frees the outputs of a run, {output_count} of them, and makes them NULL; those that
 * are NULL already are left.  They need no handle. */
void nanoloom_{name}_free_outputs(void **outputs);

/* Output number `index` with the shape that the last run gave it, until the next one;
 * NULL past the end, and where that run did not return NANOLOOM_OK.  Its memory may be
 * larger; what was found is dense at its beginning. */
const struct nanoloom_tensor *nanoloom_{name}_output_of(
    const struct nanoloom_{name} *handle, int32_t index);
"""

# What `explain` says of it besides.
NO_ROOM = """;
 * for NANOLOOM_NO_ROOM the node and the number of elements that the data want"""


def grown(name: str, given: int, made: int) -> dict[str, str]:
    """The parts of the header about a run of so many inputs and outputs."""
    return {
        "memory_of_tensors": _MEMORY,
        "running": _RUNNING.format(name=name, upper=name.upper()),
        "run": _RUN.format(name=name, input_count=given, output_count=made),
    }
