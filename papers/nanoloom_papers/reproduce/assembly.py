"""The loops of assembly text, by its control flow.

A jump backward alone tells little: LLVM puts parts of an outer loop in front of the
head of the loop they enclose, and the lines between a label and a jump to it are then
pieces of several loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import networkx as nx

LABEL = re.compile(r"^([.\w$]+):")
JUMPS_AWAY = re.compile(
    r"(jmpq?|br?|jr?|tail|retq?|ud2)\b(?!\.)"
)  # the next line is not next


def inner_loops(text: str) -> list[list[str]]:
    """The instructions of every loop that holds no other one, without labels."""
    lines = [line.strip() for line in text.splitlines()]
    blocks = basic_blocks(lines)
    heads = {label: head for head in blocks for label in labels(lines[head])}
    flow = nx.DiGraph()
    flow.add_nodes_from(blocks)
    for head, block in blocks.items():
        inside = [lines[i] for i in block if is_instruction(lines[i])]
        targets = [line.split()[-1] for line in inside]
        flow.add_edges_from((head, heads[x]) for x in targets if x in heads)
        if block.stop in blocks and not (inside and JUMPS_AWAY.match(inside[-1])):
            flow.add_edge(head, block.stop)
    return [
        [lines[i] for head in loop for i in blocks[head] if is_instruction(lines[i])]
        for loop in innermost(flow)
    ]


def innermost(flow: nx.DiGraph) -> Iterator[list[int]]:
    """The blocks of each loop without another one in it, in the order of the text.

    A loop is blocks that reach each other; without the edges back to the blocks it is
    entered by, the loops in it are left: of those edges a block's own one, too.
    """
    for blocks in sorted(nx.strongly_connected_components(flow), key=min):
        loop = nx.DiGraph(flow.subgraph(blocks))
        if not loop.number_of_edges():
            continue
        entered = {b for b in blocks if set(flow.pred[b]) - blocks} or {min(blocks)}
        back = [(a, b) for a, b in loop.in_edges(entered) if a != b or len(blocks) == 1]
        loop.remove_edges_from(back)
        yield from list(innermost(loop)) or [sorted(blocks)]


def basic_blocks(lines: list[str]) -> dict[int, range]:
    """The lines of each block by its first: blocks begin at labels and after jumps."""
    names = {label for line in lines for label in labels(line)}
    heads = {0} | {i for i, line in enumerate(lines) if labels(line)}
    heads |= {i + 1 for i, line in enumerate(lines) if ends_block(line, names)}
    order = sorted(head for head in heads if head < len(lines))
    ends = [*order, len(lines)][1:]
    return {a: range(a, b) for a, b in zip(order, ends, strict=True)}


def ends_block(line: str, names: set[str]) -> bool:
    if not is_instruction(line):
        return False
    return line.split()[-1] in names or JUMPS_AWAY.match(line) is not None


def labels(line: str) -> list[str]:
    return LABEL.findall(line)


def is_instruction(line: str) -> bool:
    return bool(line) and not line.startswith((".", "#", "//")) and not labels(line)


def count(lines: list[str], word: str) -> int:
    """How many of the instructions begin with this word, after a prefix ({vex})."""
    return sum(line.removeprefix("{vex}").lstrip().startswith(word) for line in lines)
