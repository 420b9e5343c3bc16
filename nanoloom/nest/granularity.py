"""How large a task is, and how much is written out: numbers that all choices share.

A task is what one thread computes at a time.  A program is compiled once for any number
of threads, so that how many there are is no part of these.
"""

from __future__ import annotations

# Tasks of a kernel, at least, where its blocks could be larger: for eight threads, or
# for four that end at about the same time.
FEWEST_TASKS = 8
# Numbers that an elementwise task makes, about: a few microseconds.
TASK_ELEMENTS = 8192
# Rows of a product that are a task, at least, if there are as many: what comes of a
# panel is read so often.  As measured with vector registers (library/row_block.py).
BLOCK_ROWS = 128
# Points that are written out behind each other, at most: code that the first-level
# cache of instructions holds beside other code.  An estimate.
MOST_WRITTEN = 256
# Points of an axis that are computed side by side as they share what they read: four
# planes of a stencil are a third faster than one by one, measured; of more, sums leave
# no registers.
JAMMED = 4


def sums_in_registers(registers: int) -> int:
    """How many sums a tile has at most, beside what it reads: three quarters."""
    return registers * 3 // 4
