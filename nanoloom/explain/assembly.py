"""The loops of assembly text, by its control flow.

A jump backward alone tells little: LLVM puts parts of an outer loop in front of the
head of the loop they enclose, and the lines between a label and a jump to it are then
pieces of several loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set

LINES = 200  # of assembly, at most, where no loop is left
Flow = Mapping[int, Set[int]]  # from each block to those that may come next

LABEL = re.compile(r"^([.\w$]+):")
JUMPS_AWAY = re.compile(
    r"(jmpq?|br?|jr?|tail|retq?|ud2)\b(?!\.)"
)  # the next line is not next


def inner_loops(text: str) -> list[list[str]]:
    """The instructions of every loop that holds no other one, without labels."""
    lines = [line.strip() for line in text.splitlines()]
    blocks = basic_blocks(lines)
    heads = {label: head for head in blocks for label in labels(lines[head])}
    flow: dict[int, set[int]] = {head: set() for head in blocks}
    for head, block in blocks.items():
        inside = [lines[i] for i in block if is_instruction(lines[i])]
        targets = [line.split()[-1] for line in inside]
        flow[head] |= {heads[x] for x in targets if x in heads}
        if block.stop in blocks and not (inside and JUMPS_AWAY.match(inside[-1])):
            flow[head].add(block.stop)
    return [
        [lines[i] for head in loop for i in blocks[head] if is_instruction(lines[i])]
        for loop in innermost(flow)
    ]


def innermost(flow: Flow) -> Iterator[list[int]]:
    """The blocks of each loop without another one in it, in the order of the text.

    A loop is blocks that reach each other; without the edges back to the blocks it is
    entered by, the loops in it are left: of those edges a block's own one, too.
    """
    for blocks in sorted(strong_components(flow), key=min):
        loop = {block: flow[block] & blocks for block in blocks}
        if not any(loop.values()):
            continue
        entered = {x for b, out in flow.items() if b not in blocks for x in out}
        entered = entered & blocks or {min(blocks)}
        own = set() if len(blocks) == 1 else entered
        inner = {b: out - entered | ({b} & own & out) for b, out in loop.items()}
        yield from list(innermost(inner)) or [sorted(blocks)]


def strong_components(flow: Flow) -> list[set[int]]:
    """The sets of blocks that reach each other (Kosaraju's two walks)."""
    before: dict[int, set[int]] = {block: set() for block in flow}
    for block, out in flow.items():
        for each in out:
            before[each].add(block)
    found: list[set[int]] = []
    left = set(flow)
    for last in reversed(by_end(flow)):
        component, near = set[int](), [last]
        while near:
            block = near.pop()
            if block in left:
                left.remove(block)
                component.add(block)
                near += before[block]
        found += [component] if component else []
    return found


def by_end(flow: Flow) -> list[int]:
    """The blocks in the order in which a walk leaves them, depth first."""
    order: list[int] = []
    seen = set[int]()
    waiting = [(block, False) for block in flow]
    while waiting:
        block, done = waiting.pop()
        if done:
            order.append(block)
        elif block not in seen:
            seen.add(block)
            waiting += [(block, True), *((x, False) for x in flow[block])]
    return order


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


def longest_loop(text: str) -> tuple[str, int]:
    """The instructions of the longest innermost loop, and how many there are.

    Where none is left, all instructions, the first LINES of them.
    """
    loops = inner_loops(text)
    if loops:
        return "\n".join(max(loops, key=len)).expandtabs(), len(loops)
    lines = [line.strip() for line in text.splitlines()]
    made = "\n".join([line for line in lines if is_instruction(line)][:LINES])
    return made.expandtabs(), 0
