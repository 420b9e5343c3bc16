"""SME: a product of f32 of any size as one function, in tiles as large as there are.

    void outer_products(left, right, out, room, m, n, k, rows apart of each, fresh)

    for part of k:
        for two tiles of rows:
            turned = left[rows, part] transposed, in `room`, zeros below the last row
            for two tiles of columns: sums = 0, or out[rows, columns]
                for k of the part: sums += turned[k] x right[k, columns]
                out[rows, columns] = sums

FMOPA multiplies every number of a vector by every number of another one and adds the
products to a tile, which is as high as it is wide.  Both vectors lie along the result's
dimensions, so that rows of the left operand are turned first: a tile is loaded row by
row and stored column by column.  Predicates are made once for a tile, and there is no
other form of it for edges: what is not in the result is neither read nor written.

The function alone is in streaming mode, where vectors have a length of their own and
NEON's instructions are missing; memory is all that it shares with the code around it.
(Arm, "SME programmer's guide", 109246; LLVM, docs/AArch64SME.rst)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nanoloom.ir.mlir import ir
from nanoloom.target.instructions.aarch64 import SME

NAME = "outer_products"
ROOM = 1 << 15  # numbers, 128 KiB: 256 steps at least of a sum, 4096 at most
F32, MASK = "vector<[4]xf32>", "vector<[4]xi1>"


def add_function(module: ir.Module) -> None:
    """Put the function into a module that has none yet."""
    for op in module.body.operations:
        name = op.operation.attributes.get("sym_name")
        if op.operation.name == "llvm.func" and name == ir.StringAttr.get(NAME):
            return
    made = ir.Module.parse(text())
    (function,) = list(made.body.operations)
    module.body.append(function.operation.clone())


def text() -> str:
    """The function as MLIR."""
    return f"""
llvm.func internal @{NAME}(
    %left: !llvm.ptr, %right: !llvm.ptr, %out: !llvm.ptr, %room: !llvm.ptr,
    %m: i64, %n: i64, %k: i64, %left_row: i64, %right_row: i64, %out_row: i64,
    %fresh: i1) attributes {{arm_locally_streaming}} {{
  {switch("enable")}
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %all = arith.constant dense<true> : {MASK}
  %nothing = arith.constant dense<0.0> : {F32}
  %every = arith.constant 255 : i32
  {lines(f"%tile{n} = arith.constant {n} : i32" for n in range(4))}
  %four = arith.constant 4 : i64
  %scale = "llvm.intr.vscale"() : () -> i64
  %lanes = arith.muli %scale, %four : i64
  %two = arith.addi %lanes, %lanes : i64
  %numbers = arith.constant {ROOM} : i64
  %depth = arith.divui %numbers, %two : i64
  scf.for %begin = %zero to %k step %depth : i64 {{
    %behind = arith.subi %k, %begin : i64
    %steps = arith.minsi %behind, %depth : i64
    %first = arith.cmpi eq, %begin, %zero : i64
    %from_zero = arith.andi %first, %fresh : i1
    %left_part = {moved("left", "begin")}
    %skipped = arith.muli %begin, %right_row : i64
    %right_part = {moved("right", "skipped")}
    scf.for %row = %zero to %m step %two : i64 {{
      %above = arith.subi %m, %row : i64
      %below = arith.subi %above, %lanes : i64
      %lower = arith.addi %row, %lanes : i64
      %rows_above = arith.minsi %above, %lanes : i64
      %rows_below = arith.minsi %below, %lanes : i64
        {transpose_tile()}
      scf.for %column = %zero to %n step %two : i64 {{
        {tile_of_sums()}
      }}
    }}
  }}
  {switch("disable")}
  llvm.return
}}
"""


def transpose_tile() -> str:
    """Two tiles' rows of the left operand into `room`, step after step of the sum."""
    read = [
        rows_of("left_part", "left", half, "step", [("ld1w.horiz", number, "here", 0)])
        for number, half in enumerate(("above", "below"))
    ]
    return f"""
      scf.for %step = %zero to %steps step %lanes : i64 {{
        %further = arith.subi %steps, %step : i64
        {mask("here", "further")}
        %turned = arith.minsi %further, %lanes : i64
        {intrinsic("zero", "%every", "i32")}
        {lines(read)}
        scf.for %i = %zero to %turned step %one : i64 {{
          %slice = arith.trunci %i : i64 to i32
          %number = arith.addi %step, %i : i64
          %place = arith.muli %number, %two : i64
          %p0 = {moved("room", "place")}
          %p1 = {moved("p0", "lanes")}
          {tile_row("st1w.vert", 0, "all", "p0")}
          {tile_row("st1w.vert", 1, "all", "p1")}
        }}
      }}"""


def tile_of_sums() -> str:
    """Two by two tiles from the first step of a part to the last."""
    read, write = (
        [
            rows_of("out", "out", half, "column", [
                (way, number, "inside0", 0), (way, number + 1, "inside1", 1),
            ])
            for number, half in ((0, "above"), (2, "below"))
        ]
        for way in ("ld1w.horiz", "st1w.horiz")
    )  # fmt: skip
    return f"""
        %columns = arith.subi %n, %column : i64
        %others = arith.subi %columns, %lanes : i64
        {mask("inside0", "columns")}
        {mask("inside1", "others")}
        %panel = {moved("right_part", "column")}
        scf.if %from_zero {{
          {intrinsic("zero", "%every", "i32")}
        }} else {{
          {lines(read)}
        }}
        scf.for %step = %zero to %steps step %one : i64 {{
          {products()}
        }}
        {lines(write)}"""


def products() -> str:
    """A step of the sum: two vectors by two."""
    made = [
        intrinsic(
            "mopa.nxv4f32",
            f"%tile{2 * r + c}, %all, %inside{c}, %a{r}, %b{c}",
            f"i32, {MASK}, {MASK}, {F32}, {F32}",
        )
        for r in range(2)
        for c in range(2)
    ]
    return f"""
          %at_left = arith.muli %step, %two : i64
          %at_right = arith.muli %step, %right_row : i64
          %p0 = {moved("room", "at_left")}
          %p1 = {moved("p0", "lanes")}
          %q0 = {moved("panel", "at_right")}
          %q1 = {moved("q0", "lanes")}
          {lines(load_vectors(n) for n in range(2))}
          {lines(made)}"""


def load_vectors(number: int) -> str:
    """One of the two vectors of each operand."""
    kinds = f"(!llvm.ptr, {MASK}, {F32}) -> {F32}"
    return f"""
          %a{number} = llvm.load %p{number} {{alignment = 4}} : !llvm.ptr -> {F32}
          %b{number} = llvm.intr.masked.load %q{number}, %inside{number}, %nothing
            {{alignment = 4 : i32}} : {kinds}"""


# ---- words


def rows_of(
    start: str,
    operand: str,
    half: str,
    ahead: str,
    moves: Sequence[tuple[str, int, str, int]],
) -> str:
    """A loop over the rows of half of two tiles that there are.

    ahead: where in a row they begin.  moves: how, which tile, under which mask, so many
    vectors behind the row's beginning.
    """
    first = "row" if half == "above" else "lower"
    steps = "\n".join(tile_row(way, n, m, f"p{v}") for way, n, m, v in moves)
    return f"""
      scf.for %i = %zero to %rows_{half} step %one : i64 {{
        %slice = arith.trunci %i : i64 to i32
        %own = arith.addi %{first}, %i : i64
        %skip = arith.muli %own, %{operand}_row : i64
        %place = arith.addi %skip, %{ahead} : i64
        %p0 = {moved(start, "place")}
        %p1 = {moved("p0", "lanes")}
        {steps}
      }}"""


def moved(pointer: str, count: str) -> str:
    """A pointer so many numbers further on."""
    kinds = "(!llvm.ptr, i64) -> !llvm.ptr, f32"
    return f"llvm.getelementptr %{pointer}[%{count}] : {kinds}"


def mask(name: str, count: str) -> str:
    """The first lanes of a vector, none where the count is below 1."""
    return f"""
        %{count}_index = arith.index_cast %{count} : i64 to index
        %{name} = vector.create_mask %{count}_index : {MASK}"""


def tile_row(way: str, tile: int, inside: str, place: str) -> str:
    """A row or a column of a tile, the `slice`-th, to memory or from there."""
    given = f"%{inside}, %{place}, %tile{tile}, %slice"
    return intrinsic(way, given, f"{MASK}, !llvm.ptr, i32, i32")


def intrinsic(name: str, given: str, kinds: str) -> str:
    return f'llvm.call_intrinsic "{SME}{name}"({given}) : ({kinds}) -> ()'


def switch(way: str) -> str:
    """The tiles on and off: nobody before or behind keeps anything in them."""
    return f'llvm.call_intrinsic "{SME}za.{way}"() : () -> ()'


def lines(parts: Iterable[str]) -> str:
    return "\n".join(parts)
