"""Calls that go round for blocks of rows, so that what is between stays in a cache.

    t = f(x);  u = g(t);  y = h(u)
      ->  for block of rows: { t = f(x's);  u = g(t);  y's = h(u) }

A row of what a call makes is of a row of what the one before it made, and of any rows
of what is made before all of them.  Winograd's method is such a chain: the transformed
image and products of a large one are several times as large as it is.  Blocks are the
largest of which a cache holds what is between beside all weights, which are read in
each; a product of too few rows would read its panels for those alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from math import gcd, prod

from blake3 import blake3

from nanoloom.fusion.fusion_plan import with_plan
from nanoloom.fusion.outline import text_of
from nanoloom.ir.loop_nest import read_nest
from nanoloom.ir.mlir import ir
from nanoloom.kernels.leading_rows import LeadingRows, NoRows
from nanoloom.kernels.program import Kernel, Program
from nanoloom.memory.calls import Call, Place, Storage
from nanoloom.memory.live_ranges import lifetimes
from nanoloom.memory.memory_plan import plan_memory
from nanoloom.nest.contraction import roles
from nanoloom.nest.granularity import BLOCK_ROWS
from nanoloom.target.facts import Cache

Memory = tuple[Storage, int]
# Calls of a chain, about.  A kernel is looked into only where one of its tensors is so
# large a part of what a chain must have: most of a model's are not.
MOST_LINKS = 8


def in_row_blocks(program: Program, caches: Cache) -> Program:
    """The program with chains of calls in blocks; an MLIR context must be current."""
    room = max(caches.residents, default=0)
    if program.repeats or program.sizes or sum(program.buffers) <= room:
        return program
    blocks = RowBlocks(program, room, caches.line)
    calls, sizes = list[Call](), list(program.buffers)
    kernels = dict(program.kernels)
    place = 0
    while place < len(program.calls):
        chain = blocks.chain_at(place)
        if chain is None:
            calls.append(program.calls[place])
            place += 1
            continue
        calls += chain.repeated(kernels)
        for buffer in chain.between:
            sizes[buffer] //= chain.parts
        place += chain.count
    if len(calls) == len(program.calls):
        return program
    used = {call.kernel for call in calls}
    read_later = {word.buffer for word in program.checks}
    alive = lifetimes(calls, (), sizes, set(), read_later)
    offsets, total = plan_memory(alive)
    return replace(
        program,
        kernels={name: kernel for name, kernel in kernels.items() if name in used},
        calls=tuple(calls),
        buffers=tuple(sizes),
        offsets=tuple(offsets),
        arena_bytes=total,
    )


@dataclass(frozen=True)
class Link:
    """A call of a chain, with the rows of its kernel.

    bytes: of each argument, from one row to the next.  plain: which of them have the
    rows as their first axis.
    """

    call: Call
    kernel: Kernel
    extent: int
    bytes: tuple[int, ...]
    plain: tuple[bool, ...]

    @property
    def read(self) -> tuple[Place, ...]:
        return self.call.arguments[: len(self.kernel.constants)]

    @property
    def made(self) -> tuple[Place, ...]:
        return self.call.arguments[len(self.kernel.constants) :]

    def is_plain(self, buffer: Memory) -> bool:
        """Whether rows of a buffer are this one's, wherever it occurs."""
        pairs = zip(self.call.arguments, self.plain, strict=True)
        return all(x and not p.offset for p, x in pairs if memory_of(p) == buffer)

    def product_rows(self) -> int:
        """The fewest rows of a product by a weight; 0 for no such product."""
        found = [0]
        for stage in self.kernel.nest.products:
            shape = roles(stage)
            if shape is not None:
                right = self.kernel.nest.buffer(stage.reads[shape.right].buffer)
                if self.is_constant(right.argument):
                    found.append(prod(shape.extents[d] for d in shape.rows))
        return max(found)

    def is_constant(self, argument: int) -> bool:
        return 0 <= argument < len(self.read) and self.kernel.constants[argument]


@dataclass(frozen=True)
class Chain:
    """Calls that go round, in parts of their rows.

    front: calls among them that read nothing, and run before.  between: buffers that
    only they use.
    """

    front: tuple[Call, ...]
    links: tuple[Link, ...]
    between: frozenset[int]
    parts: int

    @property
    def count(self) -> int:
        return len(self.front) + len(self.links)

    def repeated(self, kernels: dict[str, Kernel]) -> Iterator[Call]:
        """The calls; kernels: where those of parts of rows are added."""
        names: list[str] = []
        for link in self.links:
            made = of_rows(link.kernel, self.parts)
            kernels[made.name] = made
            names.append(made.name)
        yield from self.front
        for part in range(self.parts):
            for name, link in zip(names, self.links, strict=True):
                moved = (
                    self.moved(place, part * link.extent // self.parts * size)
                    for place, size in zip(link.call.arguments, link.bytes, strict=True)
                )
                yield replace(link.call, kernel=name, arguments=tuple(moved))

    def moved(self, place: Place, bytes_: int) -> Place:
        if place.storage is Storage.ARENA and place.index in self.between:
            return place
        return replace(place, offset=place.offset + bytes_)


class RowBlocks:
    """The chains of a program.  room: bytes of a cache, of lines of so many."""

    def __init__(self, program: Program, room: int, line: int) -> None:
        self.program, self.room, self.line = program, room, line
        self.rows: dict[str, LeadingRows | None] = {}
        self.users: dict[Memory, set[int]] = {}
        for number, call in enumerate(program.calls):
            for place in call.arguments:
                self.users.setdefault(memory_of(place), set()).add(number)

    def chain_at(self, first: int) -> Chain | None:
        """The longest chain of calls from one on, None where none is in blocks."""
        links, front = list[Link](), list[Call]()
        found: Chain | None = None
        for number in range(first, len(self.program.calls)):
            call = self.program.calls[number]
            kernel = self.program.kernels[call.kernel]
            if links and not kernel.constants:
                front.append(call)  # a border
                continue
            link = self.link(call)
            if link is None or (links and not follows(link, links)):
                break
            links.append(link)
            members = range(first, number + 1)
            found = self.in_parts(tuple(front), tuple(links), members) or found
        return found

    def link(self, call: Call) -> Link | None:
        """A call with its kernel's rows, None for one that has none, or few bytes."""
        sizes = [self.program.buffers[p.index] for p in call.arguments if is_arena(p)]
        if call.shapes or max(sizes, default=0) * MOST_LINKS <= self.room:
            return None
        kernel = self.program.kernels[call.kernel]
        if kernel.name not in self.rows:
            try:
                made = LeadingRows.of(ir.Module.parse(kernel.text))
            except NoRows:
                made = None
            self.rows[kernel.name] = made
        rows = self.rows[kernel.name]
        if rows is None:
            return None
        plain = tuple(x.plain for x in rows.arguments)
        return Link(call, kernel, rows.extent, tuple(rows.bytes), plain)

    def in_parts(
        self, front: tuple[Call, ...], links: tuple[Link, ...], members: range
    ) -> Chain | None:
        """Some calls in the fewest parts whose bytes a cache holds; None where it holds
        all of them, or no parts are good."""
        between = self.between(links, members)
        if not between or not is_apart(front, links, between):
            return None
        whole = sum(self.program.buffers[index] for index in between)
        weights = {
            p.index for x in links for p in x.read if p.storage is Storage.PARAMETER
        }
        fixed = sum(self.program.parameters[index].nbytes for index in weights)
        if whole + fixed <= self.room:
            return None
        common = gcd(*(link.extent for link in links))
        for parts in range(2, common // 2 + 1):
            if common % parts or not self.are_lines(links, parts):
                continue
            rows = [x.product_rows() for x in links]
            if any(0 < n < BLOCK_ROWS * parts for n in rows):
                return None
            if whole // parts + fixed <= self.room:
                return Chain(front, links, frozenset(between), parts)
        return None

    def between(self, links: Sequence[Link], members: range) -> set[int]:
        """The buffers that nothing else uses, rows of which are the calls' own."""
        made = {memory_of(p) for link in links[:-1] for p in link.made if is_arena(p)}
        kept = {(Storage.ARENA, word.buffer) for word in self.program.checks}
        return {
            memory[1]
            for memory in made - kept
            if self.users[memory] <= {*members}
            and all(link.is_plain(memory) for link in links)
        }

    def are_lines(self, links: Sequence[Link], parts: int) -> bool:
        """Whether each part begins where lines do."""
        steps = (x.extent // parts * size for x in links for size in x.bytes)
        return all(step % self.line == 0 for step in steps)


def follows(link: Link, links: Sequence[Link]) -> bool:
    """Whether a call reads rows of what the one before it made, and of other calls'
    results nothing but such rows."""
    last = {memory_of(p) for p in links[-1].made}
    read = {memory_of(p) for p in link.read}
    made = {memory_of(p) for x in links for p in x.made}
    rows = all(x.is_plain(memory) for memory in read & made for x in (*links, link))
    return bool(read & last) and rows


def is_apart(front: Sequence[Call], links: Sequence[Link], between: Set[int]) -> bool:
    """Whether no call writes where another part reads: what is made for others is in
    memory of its own."""
    used = [memory_of(p) for x in links for p in x.call.arguments]
    made = {memory_of(p) for x in links for p in x.made}
    others = {m for m in made if m[0] is not Storage.ARENA or m[1] not in between}
    early = {memory_of(p) for call in front for p in call.arguments}
    read = {memory_of(p) for x in links for p in x.read}
    return all(used.count(memory) == 1 for memory in others) and not early & read


def of_rows(kernel: Kernel, parts: int) -> Kernel:
    """The kernel for one of so many parts of its rows."""
    module = ir.Module.parse(kernel.text)
    LeadingRows.of(module).cut(parts)
    nest = with_plan(read_nest(module), module)
    text = text_of(module)
    largest = max(nest.stages, key=lambda stage: len(stage.axes))
    kind = kernel.name.rsplit("_", 2)[0]
    digest = blake3(text.encode()).hexdigest()[:8]
    arguments = module.body.operations[0].operation.regions[0].blocks[0].arguments
    return replace(
        kernel,
        name=f"{kind}_{'x'.join(map(str, largest.extents))}_{digest}",
        text=text,
        nest=nest,
        shapes=tuple(tuple(ir.RankedTensorType(a.type).shape) for a in arguments),
    )


def memory_of(place: Place) -> Memory:
    return place.storage, place.index


def is_arena(place: Place) -> bool:
    return place.storage is Storage.ARENA
