"""A Schedule as a Transform script: the only place that writes transform operations.

The script finds operations by their marks (discardable attributes nanoloom.root,
nanoloom.last and so on), so that it can be read, edited and applied again.
"""

from __future__ import annotations

from nanoloom.schedule.language import (
    Directive,
    Loops,
    Nanokernel,
    Parallel,
    Schedule,
    Split,
    Tile,
)

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

    def match(self, mark: str) -> str:
        name = self.fresh(mark)
        self.lines.append(
            f"{name} = transform.structured.match attributes {{nanoloom.{mark}}} "
            f"in %kernel : ({ANY}) -> {ANY}"
        )
        return name

    def directive(self, directive: Directive) -> None:
        match directive:
            case Parallel(sizes, fuse, slowest):
                self.tile("tile_using_forall", sizes, fuse, slowest, "last")
            case Tile(sizes, fuse, mark):
                self.tile("tile_using_for", sizes, fuse, None, mark)
            case Split(dimension, at, mark):
                self.split(dimension, at, mark)
            case Nanokernel(
                rows, vectors, packed, family, mark, depth, copied, swapped
            ):
                root = self.match(mark)
                self.lines.append(
                    f'"nanoloom.nanokernel"({root}) {{rows = {rows} : i64, '
                    f"vectors = {vectors} : i64, packed = {int(packed)} : i64, "
                    f'family = "{family}", depth = {depth} : i64, '
                    f"copied = {int(copied)} : i64, swapped = {int(swapped)} : i64}} "
                    f": ({ANY}) -> ()"
                )
            case Loops():
                self.clean()

    def tile(
        self,
        name: str,
        sizes: tuple[int, ...],
        fuse: tuple[str, ...],
        slowest: int | None,
        mark: str,
    ) -> None:
        last = self.match(mark)
        if fuse == ("all",):
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
            for mark in fuse:
                loops = self.fuse(mark, loops)
        if slowest is not None:
            parameter = self.fresh("slowest")
            self.lines += [
                f"{parameter} = transform.param.constant {slowest} : i64 "
                "-> !transform.param<i64>",
                f'transform.annotate {loops} "nanoloom.slowest" = {parameter} '
                f": {ANY}, !transform.param<i64>",
            ]
        self.clean()

    def split(self, dimension: int, at: int, mark: str) -> None:
        whole, parts = self.match(mark), self.fresh("parts")
        first, rest = self.fresh("first"), self.fresh("rest")
        self.lines += [
            f"{parts} = transform.structured.split {whole} after {at} "
            f"{{dimension = {dimension}}} : {ANY}",
            f"{first}, {rest} = transform.split_handle {parts} : ({ANY}) -> "
            f"({ANY}, {ANY})",
            f'transform.annotate {first} "nanoloom.first" : {ANY}',
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

    def fuse(self, mark: str, loops: str) -> str:
        producer = self.match(mark)
        fused, inner = self.fresh("fused"), self.fresh("loops")
        self.lines.append(
            f"{fused}, {inner} = transform.structured.fuse_into_containing_op "
            f"{producer} into {loops} : ({ANY}, {ANY}) -> ({ANY}, {ANY})"
        )
        return inner

    def clean(self) -> None:
        function = self.fresh("function")
        patterns = " ".join(CLEAN)
        self.lines += [
            f'{function} = transform.structured.match ops {{["func.func"]}} in %kernel '
            f": ({ANY}) -> {ANY}",
            f"transform.apply_patterns to {function} {{ {patterns} }} {{apply_cse}} "
            f": {ANY}",
        ]
