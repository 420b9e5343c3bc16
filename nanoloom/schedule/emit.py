"""A Schedule as a Transform script: the only place that writes transform operations.

The script finds stages by their names (the discardable attribute nanoloom.stage of
their operations), so that it can be read, edited and applied again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nanoloom.schedule.language import (
    ALL,
    Directive,
    Nanokernel,
    Parallel,
    Schedule,
    Split,
    StoreApart,
    Tile,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.schedule.packing import Packing

ANY = "!transform.any_op"
CLEAN = (
    "transform.apply_patterns.canonicalization",
    "transform.apply_patterns.scf.for_loop_canonicalization",
    "transform.apply_patterns.tensor.fold_tensor_empty",
)


def script(schedule: Schedule) -> str:
    """The whole Transform module of a schedule."""
    writer = Writer()
    for directive in schedule.directives:
        writer.directive(directive)
    writer.clean()
    body = "\n".join(f"    {line}" for line in writer.lines)
    return (
        "module attributes {transform.with_named_sequence} {\n"
        f"  // {schedule.reason}\n"
        "  transform.named_sequence @__transform_main("
        f"%kernel: {ANY} {{transform.consumed}}) {{\n{body}\n"
        "    transform.yield\n  }\n}\n"
    )


class Writer:
    """Collects the script's lines; every value gets a fresh number."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

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

    def own(self, word: str, handle: str, attributes: Mapping[str, object]) -> None:
        """One of nanoloom's own operations (vector/transform_ops.py)."""
        words = ", ".join(f"{k} = {written(v)}" for k, v in attributes.items())
        self.lines.append(f'"nanoloom.{word}"({handle}) {{{words}}} : ({ANY}) -> ()')

    def directive(self, directive: Directive) -> None:
        match directive:
            case Packing():
                self.own("pack", self.functions(), vars(directive))
            case Parallel(stage, sizes, fuse, slowest):
                self.tile("tile_using_forall", sizes, fuse, slowest, stage)
            case Tile(stage, sizes, fuse):
                self.tile("tile_using_for", sizes, fuse, None, stage)
            case Split(stage, axis, at):
                self.split(axis, at, stage)
            case StoreApart(stage):
                self.own("store_apart", self.match(stage), {})
            case Nanokernel():
                values = dict(vars(directive))
                self.own("nanokernel", self.match(values.pop("stage")), values)
            case Vectorize(stage, axis, lanes, chains):
                values = {
                    "axis": axis,
                    "lanes": lanes.count,
                    "scalable": lanes.scalable,
                    "chains": chains,
                }
                self.own("vectorize", self.match(stage), values)
            case Unroll(stage, axis, count):
                values = {"axis": axis, "count": count}
                self.own("unroll", self.match(stage), values)
            case UnrollAndJam(stage, axis, count):
                values = {"axis": axis, "count": count}
                self.own("unroll_and_jam", self.match(stage), values)

    def tile(
        self,
        name: str,
        sizes: tuple[int, ...],
        fuse: tuple[str, ...],
        slowest: int | None,
        stage: str,
    ) -> None:
        last = self.match(stage)
        if fuse == ALL:
            tiled, loops = self.fresh("tile"), self.fresh("loops")
            forall = ", use_forall" if name == "tile_using_forall" else ""
            count = 1 if forall else sum(s != 0 for s in sizes)
            several = f":{count}" if count > 1 else ""
            kinds = ", ".join([ANY] * (count + 1))
            self.lines.append(
                f"{tiled}, {loops}{several} = transform.structured.fuse {last} "
                f"tile_sizes {list(sizes)} {{apply_cleanup{forall}}} : ({ANY}) -> "
                f"({kinds})"
            )
        else:
            loops = self.tile_one(name, sizes, last)
            for producer in fuse:
                loops = self.fuse(producer, loops)
        if slowest is not None:
            parameter = self.fresh("slowest")
            self.lines += [
                f"{parameter} = transform.param.constant {slowest} : i64 "
                "-> !transform.param<i64>",
                f'transform.annotate {loops} "nanoloom.slowest" = {parameter} '
                f": {ANY}, !transform.param<i64>",
            ]
        self.clean()

    def split(self, dimension: int, at: int, stage: str) -> None:
        whole, parts = self.match(stage), self.fresh("parts")
        first, rest, word = self.fresh("first"), self.fresh("rest"), self.fresh("word")
        self.lines += [
            f"{parts} = transform.structured.split {whole} after {at} "
            f"{{dimension = {dimension}}} : {ANY}",
            f"{first}, {rest} = transform.split_handle {parts} : ({ANY}) -> "
            f"({ANY}, {ANY})",
            f'{word} = transform.param.constant "first" -> !transform.any_param',
            f'transform.annotate {first} "nanoloom.part" = {word} '
            f": {ANY}, !transform.any_param",
        ]
        self.clean()

    def tile_one(self, name: str, sizes: tuple[int, ...], last: str) -> str:
        """Tile without fusion; gives the handle of the innermost loop."""
        tiled, loops = self.fresh("tile"), self.fresh("loops")
        count = 1 if name == "tile_using_forall" else sum(s != 0 for s in sizes)
        several = f":{count}" if count > 1 else ""
        kinds = ", ".join([ANY] * (count + 1))
        self.lines.append(
            f"{tiled}, {loops}{several} = transform.structured.{name} {last} "
            f"tile_sizes {list(sizes)} : ({ANY}) -> ({kinds})"
        )
        return f"{loops}#{count - 1}" if count > 1 else loops

    def fuse(self, stage: str, loops: str) -> str:
        producer = self.match(stage)
        fused, inner = self.fresh("fused"), self.fresh("loops")
        self.lines.append(
            f"{fused}, {inner} = transform.structured.fuse_into_containing_op "
            f"{producer} into {loops} : ({ANY}, {ANY}) -> ({ANY}, {ANY})"
        )
        return inner

    def clean(self) -> None:
        function = self.functions()
        patterns = " ".join(CLEAN)
        self.lines.append(
            f"transform.apply_patterns to {function} {{ {patterns} }} {{apply_cse}} "
            f": {ANY}"
        )


def written(value: object) -> str:
    """An attribute's text."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Iterable):
        return f"[{', '.join(map(written, value))}]"
    return f"{int(value)} : i64"  # type: ignore[call-overload]
