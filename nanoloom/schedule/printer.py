"""A kernel's schedule for people: script, words, loops before and behind."""

from __future__ import annotations

from collections.abc import Iterator

from nanoloom.kernels.program import Kernel
from nanoloom.nest.printer import print_nest
from nanoloom.schedule.language import Schedule

WORDS = "words, for the reader: an edit counts in the script above"


def print_schedule(kernel: Kernel, given: Schedule | str) -> str:
    """The script first, which --schedule takes back; all else is for the reader.

    given: the schedule, or a script that somebody wrote, whose loops are not known.
    """
    if isinstance(given, str):
        parts = [given, *comment("loops of the kernel", print_nest(kernel.nest))]
    else:
        parts = [
            given.to_transform(kernel.nest),
            *comment(WORDS, str(given)),
            *comment(
                "weighed: predicted cycles for the least work", print_candidates(given)
            ),
            *comment("loops of the kernel", print_nest(kernel.nest)),
            *comment("loops as scheduled", print_nest(given.apply(kernel.nest))),
        ]
    return "\n".join([*parts, "", kernel.text])


def print_candidates(schedule: Schedule) -> str:
    """What was weighed, a line each, the cheapest first; * is what was chosen."""
    return "\n".join(
        f"{'*' if x.directives == schedule.directives else ' '} {x.cost:6.2f}  "
        f"{x.reason}"
        for x in schedule.candidates
    )


def comment(title: str, text: str) -> Iterator[str]:
    """A text that MLIR does not read, under a title; nothing for none."""
    if not text:
        return
    yield f"// {title}:"
    for line in text.splitlines():
        yield f"//   {line}"
