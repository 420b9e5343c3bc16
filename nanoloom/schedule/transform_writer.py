"""The operations of a Transform script, one method each: the only place with text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nanoloom.nest.extent import Lanes

ANY = "!transform.any_op"
PARAMETER = "!transform.param<i64>"
CLEAN = (
    "transform.apply_patterns.canonicalization",
    "transform.apply_patterns.scf.for_loop_canonicalization",
    "transform.apply_patterns.tensor.fold_tensor_empty",
)


@dataclass(frozen=True)
class Scaled:
    """The size of a tile: so many vectors, as wide as the machine's."""

    lanes: Lanes
    vectors: int


Size = int | Scaled


class Steps:
    """Collects the script's lines; every value gets a fresh number."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.widths: dict[Lanes, str] = {}  # of vectors, each a parameter
        self.count = 0
        self.named: dict[str, str] = {}  # loops that get names, by their handles

    def module(self, reason: str) -> str:
        """The whole script."""
        self.clean()
        lines = [*map(constant, self.widths), *self.lines]
        body = "\n".join(f"    {line}" for line in lines)
        return (
            "module attributes {transform.with_named_sequence} {\n"
            f"  // {reason}\n"
            "  transform.named_sequence @__transform_main("
            f"%kernel: {ANY} {{transform.consumed}}) {{\n{body}\n"
            "    transform.yield\n  }\n}\n"
        )

    def fresh(self, word: str) -> str:
        self.count += 1
        return f"%{word}{self.count}"

    def match(self, stage: str) -> str:
        """A handle of a stage, or of one part of it (STAGE.PART)."""
        word, _, part = stage.partition(".")
        name = self.fresh(f"{word}_")
        words = f'nanoloom.stage = "{word}"'
        words += f', nanoloom.part = "{part}"' if part else ""
        self.lines.append(
            f"{name} = transform.structured.match attributes {{{words}}} "
            f"in %kernel : ({ANY}) -> {ANY}"
        )
        return name

    def functions(self) -> str:
        name = self.fresh("function")
        self.lines.append(
            f'{name} = transform.structured.match ops {{["func.func"]}} in %kernel '
            f": ({ANY}) -> {ANY}"
        )
        return name

    def width(self, lanes: Lanes) -> str:
        """The parameter that says how wide vectors are: one, whoever asks for it."""
        return self.widths.setdefault(lanes, parameter(lanes))

    def own(self, word: str, stage: str, values: Mapping[str, object]) -> None:
        """One of nanoloom's own operations (vector/transform_ops.py), on a stage."""
        self.own_of(word, self.match(stage), values)

    def own_of(self, word: str, handle: str, values: Mapping[str, object]) -> None:
        """Widths of vectors are read from their parameters, the rest stands there."""
        read = [self.width(v) for v in values.values() if isinstance(v, Lanes)]
        said = {k: v for k, v in values.items() if not isinstance(v, Lanes)}
        words = ", ".join(f"{k} = {format_operation(v)}" for k, v in said.items())
        kinds = ", ".join([ANY] + [PARAMETER] * len(read))
        operands = ", ".join([handle, *read])
        self.lines.append(
            f'"nanoloom.{word}"({operands}) {{{words}}} : ({kinds}) -> ()'
        )

    def of_kernel(self, word: str, values: Mapping[str, object]) -> None:
        """One of nanoloom's own operations, on the whole kernel."""
        self.own_of(word, self.functions(), values)

    def sizes(self, stage: str, sizes: Sequence[Size]) -> tuple[str, str]:
        """Of tiles, as the operations take them: a list, and their operands' types.

        Tiling would take a scalable parameter as a plain number, so that steps are
        handles of products in the code.
        """
        words: list[str] = []
        kinds = [ANY]
        for size in sizes:
            if isinstance(size, int):
                words.append(str(size))
                continue
            words.append(self.fresh("size"))
            kinds.append(ANY)
            self.lines.append(
                f'{words[-1]} = "nanoloom.scaled"({stage}, {self.width(size.lanes)}) '
                f"{{vectors = {size.vectors} : i64}} : ({ANY}, {PARAMETER}) -> {ANY}"
            )
        return f"[{', '.join(words)}]", ", ".join(kinds)

    def fuse_all(
        self,
        stage: str,
        sizes: Sequence[Size],
        tasks: bool,
        slowest: int | None,
        name: str = "",
    ) -> str:
        """Tile a stage with everything in front of it; the innermost loop's handle."""
        last = self.match(stage)
        by, given = self.sizes(last, sizes)
        tiled, loops = self.fresh("tile"), self.fresh("loops")
        count = 1 if tasks else sum(s != 0 for s in sizes)
        several = f":{count}" if count > 1 else ""
        kinds = ", ".join([ANY] * (count + 1))
        self.lines.append(
            f"{tiled}, {loops}{several} = transform.structured.fuse {last} "
            f"tile_sizes {by} {{apply_cleanup{', use_forall' * tasks}}} "
            f": ({given}) -> ({kinds})"
        )
        return self.finished(loops, count, slowest, name)

    def tile(
        self,
        stage: str,
        sizes: Sequence[Size],
        tasks: bool,
        fused: Iterable[tuple[str, bool]],
        slowest: int | None,
        name: str = "",
    ) -> str:
        """Tile a stage, with some others inside; gives the innermost loop's handle.

        fused: their names, and whether they are borders around others.
        """
        last = self.match(stage)
        by, given = self.sizes(last, sizes)
        tiled, loops = self.fresh("tile"), self.fresh("loops")
        count = 1 if tasks else sum(s != 0 for s in sizes)
        several = f":{count}" if count > 1 else ""
        kinds = ", ".join([ANY] * (count + 1))
        word = "tile_using_forall" if tasks else "tile_using_for"
        self.lines.append(
            f"{tiled}, {loops}{several} = transform.structured.{word} {last} "
            f"tile_sizes {by} : ({given}) -> ({kinds})"
        )
        inner = f"{loops}#{count - 1}" if count > 1 else loops
        for producer, is_border in fused:
            if is_border:
                self.own("store_at", producer, {"where": "padded"})
            else:
                inner = self.fuse(producer, inner)
        return self.finished(inner, 1, slowest, name)

    def finished(
        self, loops: str, count: int, slowest: int | None, name: str = ""
    ) -> str:
        """The innermost loop's handle.  name: what it is known by to other steps."""
        inner = f"{loops}#{count - 1}" if count > 1 else loops
        if slowest is not None:
            place = self.fresh("slowest")
            self.lines += [
                f"{place} = transform.param.constant {slowest} : i64 -> {PARAMETER}",
                f'transform.annotate {inner} "nanoloom.slowest" = {place} '
                f": {ANY}, {PARAMETER}",
            ]
        self.clean()
        if name:
            self.named[inner] = name
        return inner

    def name_loops(self) -> None:
        """Write their names on the loops: one that is made again loses its name."""
        for handle, name in self.named.items():
            self.annotate(handle, "nanoloom.loop", name)
        self.named = {}

    def fuse(self, stage: str, loops: str) -> str:
        producer = self.match(stage)
        fused, inner = self.fresh("fused"), self.fresh("loops")
        self.lines.append(
            f"{fused}, {inner} = transform.structured.fuse_into_containing_op "
            f"{producer} into {loops} : ({ANY}, {ANY}) -> ({ANY}, {ANY})"
        )
        return inner

    def peel(self, stage: str, dimension: int, at: int) -> None:
        """Two parts of an axis, one behind the other; the first has a mark."""
        whole, parts = self.match(stage), self.fresh("parts")
        first, rest = self.fresh("first"), self.fresh("rest")
        self.lines += [
            f"{parts} = transform.structured.split {whole} after {at} "
            f"{{dimension = {dimension}}} : {ANY}",
            f"{first}, {rest} = transform.split_handle {parts} : ({ANY}) -> "
            f"({ANY}, {ANY})",
        ]
        self.annotate(first, "nanoloom.part", "first")
        self.clean()
        self.of_kernel("whole_slices", {})

    def split_reduction(self, stage: str, parts: int, place: int) -> None:
        """A sum of partial sums, which have names of their own.

        place: of their number among the loops.
        """
        whole, begin = self.match(stage), self.fresh("begin")
        names = [self.fresh("empty"), begin, self.fresh("parts"), self.fresh("all")]
        filled = self.fresh("filled")
        self.lines += [
            f"{', '.join(names)} = transform.structured.split_reduction {whole} "
            f"{{split_factor = {parts}, insert_split_dimension = {place}}} : ({ANY}) "
            f"-> ({', '.join([ANY] * 4)})",
            f"{filled} = transform.structured.generalize {begin} : ({ANY}) -> {ANY}",
        ]
        self.name(filled, f"{stage}_begin")
        self.name(names[2], f"{stage}_parts")
        self.name(names[3], stage)
        self.clean()

    def name(self, handle: str, stage: str) -> None:
        """Give an operation the name of a stage."""
        self.annotate(handle, "nanoloom.stage", stage)

    def annotate(self, handle: str, attribute: str, text: str) -> None:
        """Give operations an attribute."""
        word = self.fresh("word")
        self.lines += [
            f'{word} = transform.param.constant "{text}" -> !transform.any_param',
            f'transform.annotate {handle} "{attribute}" = {word} '
            f": {ANY}, !transform.any_param",
        ]

    def unroll(self, loops: str, trips: int) -> None:
        """A loop's steps behind each other."""
        self.lines.append(f"transform.loop.unroll {loops} {{factor = {trips}}} : {ANY}")

    def clean(self) -> None:
        function = self.functions()
        patterns = " ".join(CLEAN)
        self.lines.append(
            f"transform.apply_patterns to {function} {{ {patterns} }} {{apply_cse}} "
            f": {ANY}"
        )


def parameter(lanes: Lanes) -> str:
    """Its name: %lanes8, or %scalable4 for [4]."""
    return f"%{'scalable' if lanes.scalable else 'lanes'}{lanes.count}"


def constant(lanes: Lanes) -> str:
    """The step that makes a parameter."""
    count = lanes.count
    return f"{parameter(lanes)} = transform.param.constant {count} : i64 -> {PARAMETER}"


def format_operation(value: object) -> str:
    """An attribute's text."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Iterable):
        return f"[{', '.join(map(format_operation, value))}]"
    return f"{int(value)} : i64"  # type: ignore[call-overload]
