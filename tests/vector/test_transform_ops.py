"""Scripts that people write: good ones run, others are refused with their line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.language import Nanokernel, Parallel, Schedule, Tile
from nanoloom.schedule.packing import Pack
from nanoloom.schedule.transform_writer import ANY, PARAMETER
from nanoloom.target import by_name
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, program_of, run, stage_text, targets

M, K, N = 31, 33, 70
W = sample(1, (K, N), "float32")
TARGET = by_name("x86-64-v3")  # eight lanes
ALL = ("all",)


def packed(b: Any, x: Any) -> Any:
    return b.elementwise(
        lambda s: s.maximum(0), b.einsum("mk,kn->mn", x, b.constant(W))
    )


def unpacked(b: Any, x: Any, w: Any) -> Any:
    return b.elementwise(lambda s: s.maximum(0), b.einsum("mk,kn->mn", x, w))


def given(*steps: str) -> str:
    """A script of these lines; the first is the script's third line."""
    lines = "\n".join(steps)
    return (
        "module attributes {transform.with_named_sequence} {\n"
        "  transform.named_sequence @__transform_main(%kernel: "
        f"{ANY} {{transform.consumed}}) {{\n{lines}\n    transform.yield\n  }}\n}}\n"
    )


def match(name: str, stage: str) -> str:
    return (
        f"%{name} = transform.structured.match attributes {{nanoloom.stage = "
        f'"{stage}"}} in %kernel : ({ANY}) -> {ANY}'
    )


def nanokernel(
    handle: str, rows: int, vectors: int, packed: int, family: str, lanes: int = 8
) -> str:
    return (
        f"{width(lanes)} "
        f'"nanoloom.nanokernel"(%{handle}, %w) {{rows = {rows} : i64, '
        f'vectors = {vectors} : i64, packed = {packed} : i64, family = "{family}", '
        f'depth = 0 : i64, copy_rhs = "", hold_lhs = 0 : i64, '
        f"unroll = 4 : i64, convert_lhs = 0 : i64, pin_order = 1 : i64, "
        "keep_broadcast_live = 0 : i64, "
        f"unfused_mul_add = 0 : i64, "
        f"unmasked_fast_path = 0 : i64}} : ({ANY}, {PARAMETER}) -> ()"
    )


def width(lanes: int) -> str:
    """A parameter %w, on the line of what reads it."""
    return f"%w = transform.param.constant {lanes} : i64 -> {PARAMETER}"


def refusal(make: Any, text: Schedule | str, *inputs: Any) -> str:
    """What nanoloom says to a script."""
    program = program_of(make, *(inputs or [((M, K), "float32")]))
    (name,) = program.kernels
    with pytest.raises(Error) as found:
        stage_text(program, "llvm", TARGET, script=text)
    said = str(found.value)
    assert said.startswith(f"schedule of kernel {name}")
    assert "\n" not in said
    return said.removeprefix(f"schedule of kernel {name}").lstrip(",: ")


# ---- good ones -----------------------------------------------------------------------


@pytest.mark.parametrize("rows, vectors", [(1, 1), (3, 2), (7, 1), (31, 1), (2, 9)])
def test_another_register_tile_gives_the_same_numbers(rows: int, vectors: int) -> None:
    target = targets()[-1]
    columns = vectors * target.lanes(32)
    schedule = Schedule((
        Parallel("point", (0, columns), ALL), Tile("point", (rows, 0), ALL),
        Nanokernel(rows, vectors, Lanes(target.lanes(32)), False),
    ))  # fmt: skip
    x = sample(2, (M, K), "float32")
    got = run(unpacked, x, W, target=target, order=backwards, script=schedule)
    exact, size = np.maximum(wide(x) @ wide(W), 0), abs(wide(x)) @ abs(wide(W))
    check(got, exact, K + 1, size)


def test_a_contraction_without_a_nanokernel() -> None:
    x = sample(3, (M, K), "float32")
    schedule = Schedule((Parallel("point", (5, 0), ALL),))
    got = run(unpacked, x, W, order=backwards, script=schedule)
    exact, size = np.maximum(wide(x) @ wide(W), 0), abs(wide(x)) @ abs(wide(W))
    check(got, exact, K + 1, size)


def test_a_script_that_does_nothing() -> None:
    x = sample(4, (M, K), "float32")
    got = run(unpacked, x, W, script=given())
    exact, size = np.maximum(wide(x) @ wide(W), 0), abs(wide(x)) @ abs(wide(W))
    check(got, exact, K + 1, size)


def test_the_chosen_script_can_be_given_back() -> None:
    program = program_of(packed, ((M, K), "float32"))
    text = stage_text(program, "schedule", TARGET)
    own = text[: text.index("\n}\n") + 3]
    given_back = stage_text(program, "asm", TARGET, script=own)
    assert given_back == stage_text(program, "asm", TARGET)


# ---- no script -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" ", "the script has no transform.named_sequence @__transform_main"),
        ("nonsense", "line 1: custom op 'nonsense' is unknown"),
        (given("transform.frobnicate"), "line 3: custom op 'transform.frobnicate'"),
        (given("", match("a", "point")[:-3]), "line 4: unknown type mnemonic"),
        ("func.func @f() { return }", "the script has no transform.named_sequence"),
        ("\x01", "line 1: unexpected character"),
    ],
    ids=["blank", "nonsense", "unknown", "broken", "function", "binary"],
)  # fmt: skip
def test_what_is_no_script(text: str, said: str) -> None:
    assert refusal(packed, text).startswith(said)


# ---- scripts that do not apply -------------------------------------------------------


def test_too_many_tile_sizes() -> None:
    text = given(
        match("last", "point"),
        "%t, %l:3 = transform.structured.tile_using_for %last tile_sizes [4, 4, 4] "
        f": ({ANY}) -> ({ANY}, {ANY}, {ANY}, {ANY})",
    )
    assert refusal(packed, text) == (
        "line 4: too many tiles provided, expected at most 2 found 3"
    )


def test_a_packed_weight_that_no_nanokernel_reads() -> None:
    packing = Schedule((Pack(1, (), 1, (0,), 16),))
    said = refusal(packed, packing)
    assert "a weight is packed in panels of" in said
    assert said.endswith('the script needs "nanoloom.nanokernel" with packed = 1')


def test_only_bytes_become_wide_in_panels() -> None:
    packing = Schedule((Pack(1, (), 1, (0,), 16, bits=16),))
    assert "only bytes become wider in panels, not f32" in refusal(packed, packing)


@pytest.mark.parametrize(
    ("group", "sums", "differences"), [(8, -1, False), (4, -1, True), (8, -1, True)]
)
def test_panels_of_bits_are_whole(group: int, sums: int, differences: bool) -> None:
    """The weight is of f32; a half of what says so is refused of bytes as well."""
    word = Pack(1, (), 1, (0,), 16, group, sums, differences=differences)
    said = refusal(packed, Schedule((word,)))
    assert "panels of two words of bits are bytes in groups of 8" in said


def test_what_has_no_lowering() -> None:
    """It would end the process in the translation to LLVM IR."""
    text = given(
        f'%f = transform.structured.match ops {{["func.func"]}} in %kernel : ({ANY}) '
        f"-> {ANY}",
        '%p = transform.param.constant "x" -> !transform.any_param',
        f'transform.annotate %f "llvm.linkage" = %p : {ANY}, !transform.any_param',
    )
    assert refusal(unpacked, text, ((M, K), "float32"), ((K, N), "float32"))


# ---- nanokernels that do not fit -----------------------------------------------------


def clean(name: str) -> str:
    """What tiling leaves behind is removed, and sizes become what they are at most."""
    return (
        f'%{name} = transform.structured.match ops {{["func.func"]}} in %kernel : '
        f"({ANY}) -> {ANY} transform.apply_patterns to %{name} "
        f"{{ transform.apply_patterns.canonicalization }} {{apply_cse}} : {ANY}"
    )


TILED = (
    match("last", "point"),
    "%t, %l = transform.structured.fuse %last tile_sizes [0, 16] "
    f"{{apply_cleanup, use_forall}} : ({ANY}) -> ({ANY}, {ANY})",
    clean("f"),
    match("again", "point"),
    "%u, %k = transform.structured.fuse %again tile_sizes [4, 0] {apply_cleanup} "
    f": ({ANY}) -> ({ANY}, {ANY})",
    clean("g"),
    match("root", "product"),
)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (nanokernel("root", 3, 2, 0, "fma"),
         "a tile has 4 results along dimension 0, the nanokernel 3"),
        (nanokernel("root", 4, 1, 0, "fma"),
         "a tile has 16 results along dimension 1, the nanokernel 8"),
        (nanokernel("root", 4, 2, 1, "fma"),
         "the right operand is not packed, the nanokernel"),
        (nanokernel("root", 0, 2, 0, "fma"), "0 rows of 2 vectors are no register"),
        (nanokernel("root", -4, 2, 0, "fma"), "-4 rows of 2 vectors are no register"),
        (nanokernel("root", 999, 9, 0, "fma"), "999 rows of 9 vectors are no register"),
        (nanokernel("root", 4, 2, 0, "gpu"), "there is no family 'gpu' of nanokernels"),
        (nanokernel("root", 4, 2, 0, "amx-bf16"),
         "family amx-bf16 does not sum f32 by f32 in f32"),
        (nanokernel("root", 4, 2, 0, "fma", 16),
         "lanes = 16: family fma has vectors of 8 sums in f32 on x86-64-v3"),
        (nanokernel("root", 4, 2, 0, "fma", 2), "lanes = 2: family fma has vectors of"),
        (nanokernel("root", 4, 2, 0, "fma", 6), "lanes = 6: family fma has vectors of"),
        (nanokernel("root", 4, 2, 0, "fma").replace("rows = 4 : i64, ", ""),
         "'nanoloom.nanokernel' op attribute \"rows\" is expected but not provided"),
        (f'{width(8)} %ww = transform.merge_handles %w, %w : {PARAMETER} '
         + nanokernel("root", 4, 2, 0, "fma").partition("64> ")[2].replace("%w", "%ww"),
         "the width of vectors is [8, 8]: one number is wanted"),
        (nanokernel("root", 4, 2, 0, "fma").replace("pin_order = 1", "pin_order = 0")
         .replace("unfused_mul_add = 0", "unfused_mul_add = 1"),
         "pin_order, keep_broadcast_live, unfused_mul_add"),
        (nanokernel("u", 4, 2, 0, "fma"), "a nanokernel needs a contraction, not this"),
        (nanokernel("l", 4, 2, 0, "fma"), "a nanokernel needs a contraction, not this "
         "scf.forall"),
        (f'{width(8)} "nanoloom.nanokernel"(%root, %w) : ({ANY}, {PARAMETER}) -> ()',
         "'nanoloom.nanokernel' op attribute"),
        (f'"nanoloom.nanokernel"(%root, %root) : ({ANY}, {ANY}) -> ()',
         "'nanoloom.nanokernel' op "),
        ('"nanoloom.nanokernel"() : () -> ()', "op expects exactly 2 operands"),
        (nanokernel("root", 4, 2, 0, "fma").replace("4 : i64", '"4"'), ""),
    ],
)  # fmt: skip
def test_a_nanokernel_that_does_not_fit(step: str, said: str) -> None:
    """Each would have given wrong numbers, or none at all."""
    inputs = ((M, K), "float32"), ((K, N), "float32")
    assert refusal(unpacked, given(*TILED, step), *inputs).startswith(
        f"line 10: {said}"
    )


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ('vectorize"(%root, %w) {axis = 1 : i64, scalable = 0 : i64, '
         'chains = 1 : i64, form = "masked"}', "is vectorized"),
        ('unroll"(%root) {axis = 2 : i64, count = 2 : i64}', "is unrolled"),
        ('unroll_and_jam"(%root) {axis = 0 : i64, count = 2 : i64}', "is unrolled"),
        ('copy_operand"(%root, %w) {operand = 1 : i64, scalable = 0 : i64, '
         "wide = 0 : i64}", "reads a copy"),
    ],
)  # fmt: skip
def test_what_a_nanokernel_makes_itself(word: str, said: str) -> None:
    """No word is dropped without a word."""
    kinds = f"{ANY}, {PARAMETER}" if "%w" in word else ANY
    step = f'{width(8)} "nanoloom.{word} : ({kinds}) -> ()'
    kernel = nanokernel("root2", 4, 2, 0, "fma").replace("%w", "%v")
    again = [match("root2", "product"), kernel]
    inputs = ((M, K), "float32"), ((K, N), "float32")
    reason = f"the contraction {said} already: a nanokernel has vectors, loops"
    assert reason in refusal(unpacked, given(*TILED, step, *again), *inputs)


def test_a_sum_that_is_tiled() -> None:
    text = given(
        match("root", "product"),
        "%t, %l:3 = transform.structured.tile_using_for %root tile_sizes [4, 16, 8] "
        f": ({ANY}) -> ({ANY}, {ANY}, {ANY}, {ANY})",
        nanokernel("t", 4, 2, 0, "fma"),
    )
    said = refusal(unpacked, text, ((M, K), "float32"), ((K, N), "float32"))
    assert said.startswith("line 5: a nanokernel runs the whole sum")


@pytest.mark.parametrize(
    ("columns", "vectors", "said"),
    [(8, 1, "panels of"), (32, 4, "panels of"), (12, 0, "panel")],
)
def test_panels_of_another_width(columns: int, vectors: int, said: str) -> None:
    """A nanokernel has to read panels as they are packed."""
    schedule = Schedule((
        Pack(1, (), 1, (0,), 16), Parallel("point", (0, columns), ALL),
        Tile("point", (4, 0), ALL), Nanokernel(4, vectors or 2, Lanes(8), True),
    ))  # fmt: skip
    assert said in refusal(packed, schedule)


def test_a_batch_that_is_not_tiled() -> None:
    def make(b: Any, x: Any, y: Any) -> Any:
        return b.einsum("bmk,bkn->bmn", x, y)

    schedule = Schedule((
        Parallel("product", (0, 0, 16), ALL), Tile("product", (0, 4, 0), ALL),
        Nanokernel(4, 2, Lanes(8), False),
    ))  # fmt: skip
    inputs = ((3, M, K), "float32"), ((3, K, N), "float32")
    said = refusal(make, schedule, *inputs)
    assert "a tile has 3 results along dimension 0, the nanokernel 1" in said
