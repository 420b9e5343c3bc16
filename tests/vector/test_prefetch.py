"""The next panel comes while one is computed; what is read once, a little ahead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.kernels.program import Program
from nanoloom.schedule.library.nanokernels import AHEAD
from nanoloom.target import Target, by_name
from nanoloom.vector.prefetch import LINE
from tests.filecheck import check_text
from tests.linalg.bounds import dtype_of
from tests.linalg.single import model_of
from tests.vector.kernel_harness import program_of, stage_text

TARGET = by_name("sapphirerapids")
W = np.zeros((256, 96), np.float32)


def product(b: Any, x: Any) -> Any:
    return b.einsum("mk,kn->mn", x, b.constant(W))


def test_a_share_of_the_next_panel_comes_each_round() -> None:
    """12 tiles of 64 rounds; a panel of 256 x 48 numbers has 768 lines: one a round."""
    program = program_of(product, ((96, 256), "float32"))
    script = in_fours(script_of(program, TARGET))
    check_text(
        stage_text(program, "vector", TARGET, script=script),
        """
    CHECK: scf.for [[ROW:%.*]] = %c0 to %c96 step %c8
    CHECK: scf.for [[K:%.*]] = %c0 to %c256 step %c4
    CHECK: [[NEXT:%.*]] = arith.addi {{.*}}, %c1
    CHECK-COUNT-3: vector.transfer_read %arg1[
    CHECK: memref.prefetch %arg1{{\\[}}[[NEXT]], %c0, {{.*}}], read, locality<2>
    CHECK: llvm.inline_asm
    CHECK-NOT: memref.prefetch
    CHECK-COUNT-9: vector.transfer_read %arg1[
    """,
    )
    assert "prefetcht1" in stage_text(program, "asm", TARGET)


def in_fours(script: str) -> str:
    """The script with four steps of the sum in a round."""
    assert "unroll = 1 " in script
    return script.replace("unroll = 1 ", "unroll = 4 ")


def test_a_single_tile_reads_a_panel_once() -> None:
    """Nobody would come back for the next panel: the lines further on are fetched."""
    program = program_of(product, ((8, 256), "float32"))
    text = stage_text(program, "vector", TARGET)
    assert f"arith.constant {TARGET.caches.page // 4} : index" in text
    assert text.count("memref.prefetch") == text.count("vector.transfer_read %arg1[")


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_few_rows_are_nothing_but_loads(rows: int) -> None:
    """They wait for memory only; of one row the second-level cache may hold it all."""
    program = program_of(product, ((rows, 256), "float32"))
    assert "prefetch" not in stage_text(program, "vector", TARGET)


def test_a_single_row_of_a_large_weight() -> None:
    """It comes from further away: more is under way than the processor has itself."""
    weight = np.zeros((1024, 1024), np.float32)
    assert weight.nbytes > TARGET.caches.l2

    def make(b: Any, x: Any) -> Any:
        return b.einsum("mk,kn->mn", x, b.constant(weight))

    program = program_of(make, ((1, 1024), "float32"))
    text = stage_text(program, "vector", TARGET)
    assert f"arith.constant {AHEAD} : index" in text
    assert text.count("memref.prefetch") == text.count("vector.transfer_read %arg1[")
    assert "locality<2>" in text


@pytest.mark.parametrize("batch", [(), (3,)])
def test_two_activations_are_not(batch: tuple[int, ...]) -> None:
    """They were written just before: they lie in the cache."""

    def make(b: Any, x: Any, w: Any) -> Any:
        return b.einsum("bmk,bkn->bmn" if batch else "mk,kn->mn", x, w)

    given = ((*batch, 96, 256), "float32"), ((*batch, 256, 96), "float32")
    program = program_of(make, *given)
    assert "nanoloom.prefetch" not in stage_text(program, "schedule", TARGET)
    assert "memref.prefetch" not in stage_text(program, "vector", TARGET)


ONCE = (
    "{argument = 1 : i64, lines = 0 : i64, ahead = 64 : i64, loops = [], "
    "level = 1 : i64}"
)


# ---- what the schedule says ----------------------------------------------------------


def script_of(program: Program, target: Target) -> str:
    text = stage_text(program, "schedule", target)
    return text[: text.index("\n}\n") + 3]


def line_of(script: str, word: str) -> str:
    (line,) = (x for x in script.splitlines(keepends=True) if f'"nanoloom.{word}"' in x)
    return line


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int8"])
def test_nothing_comes_unless_the_script_says_so(kind: str) -> None:
    """Nor of the panels of tile registers, which bf16 and bytes have here."""
    weight = np.zeros((256, 96), dtype_of(kind))
    sums = np.dtype(np.int32 if kind == "int8" else np.float32)

    def make(b: Any, x: Any) -> Any:
        return b.einsum("mk,kn->mn", x, b.constant(weight), dtype=sums)

    program = program_of(make, ((96, 256), kind))
    script = script_of(program, TARGET)
    assert ("amx" in script) == (kind != "float32")
    assert "memref.prefetch" in stage_text(program, "vector", TARGET, script=script)
    silent = script.replace(line_of(script, "prefetch"), "")
    assert "prefetch" not in stage_text(program, "vector", TARGET, script=silent)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_how_far_ahead_is_a_number_of_the_script(kind: str) -> None:
    """A panel that is read once: so many lines in front of the reader."""
    weight = np.zeros((256, 96), dtype_of(kind))

    def make(b: Any, x: Any) -> Any:
        sums = np.dtype(np.float32)
        return b.einsum("mk,kn->mn", x, b.constant(weight), dtype=sums)

    program = program_of(make, ((8, 256), kind))
    script = script_of(program, TARGET)
    page = TARGET.caches.page // TARGET.caches.line
    further = script.replace(f"ahead = {page} ", f"ahead = {page + 1000} ")
    near, far = (
        stage_text(program, "vector", TARGET, script=x) for x in (script, further)
    )
    assert near.count("locality<3>") == far.count("locality<3>") > 0
    ahead = 1000 * LINE // dtype_of(kind).itemsize
    numbers = [
        sorted(int(n) for n in re.findall(r"constant (\d+) : index", text))
        for text in (near, far)
    ]
    assert {n + ahead for n in set(numbers[0]) - set(numbers[1])} <= set(numbers[1])
    assert numbers[0] != numbers[1]


def test_the_loop_in_which_it_comes_is_the_scripts() -> None:
    """It is called by its name there; without one the rest of the panel comes."""
    program = program_of(product, ((96, 256), "float32"))
    script = script_of(program, TARGET)
    fetch = line_of(script, "prefetch")
    (name,) = re.findall(r'loops = \["([\w.]+)"\]', fetch)
    assert f'constant "{name}" -> !transform.any_param' in script
    text = stage_text(program, "vector", TARGET, script=script)
    assert "locality<2>" in text and "locality<3>" not in text
    own = re.sub("lines = .*]", "lines = 0 : i64, ahead = 70 : i64, loops = []", fetch)
    own = own.replace("level = 2", "level = 1")
    text = stage_text(program, "vector", TARGET, script=script.replace(fetch, own))
    assert "locality<3>" in text and "locality<2>" not in text
    assert f"{70 * 16} : index" in text


def refusal(kind: str, rows: int, change: Callable[[str], str]) -> str:
    """What is said to a changed script, behind the kernel's name."""
    weight, sums = np.zeros((2048, 96), dtype_of(kind)), np.dtype(np.float32)
    program = program_of(
        lambda b, x: b.einsum("mk,kn->mn", x, b.constant(weight), dtype=sums),
        ((rows, 2048), kind),
    )
    script = script_of(program, TARGET)
    assert change(script) != script
    with pytest.raises(Error) as found:
        stage_text(program, "vector", TARGET, script=change(script))
    return str(found.value).partition(": ")[2]


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_a_loop_that_is_not_there(kind: str) -> None:
    """By its name, beside one that is there, too; and of tile registers."""

    def beside(script: str) -> str:
        return re.sub(r"loops = \[(.+?)\]", r'loops = [\1, "x.y"]', script)

    said = refusal(kind, 96, beside)
    assert re.fullmatch(
        r"no loop x\.y reads panels of argument 1: product\.d0o? does", said
    )


def test_only_a_loop_that_is_not_there() -> None:
    def alone(script: str) -> str:
        return re.sub(r"loops = \[.+?\]", 'loops = ["x.y"]', script)

    said = refusal("float32", 96, alone)
    assert said == "no loop x.y is around a nanokernel that reads panels"
    said = refusal("bfloat16", 96, alone)
    assert said == "no loop x.y reads panels of argument 1: product.d0 does"


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_the_cache_into_which_it_comes(kind: str) -> None:
    weight, sums = np.zeros((2048, 96), dtype_of(kind)), np.dtype(np.float32)
    program = program_of(
        lambda b, x: b.einsum("mk,kn->mn", x, b.constant(weight), dtype=sums),
        ((96, 2048), kind),
    )
    script = script_of(program, TARGET)
    for level, locality in ((1, 3), (2, 2), (3, 1)):
        other = script.replace("level = 2 ", f"level = {level} ")
        text = stage_text(program, "vector", TARGET, script=other)
        assert set(re.findall(r"locality<(\d)>", text)) == {str(locality)}


def test_a_cache_that_is_not_there() -> None:
    said = refusal("float32", 96, lambda x: x.replace("level = 2 ", "level = 4 "))
    assert said == "level = 4: caches 1 to 3 are known"
    assert "level" in refusal(
        "float32", 96, lambda x: x.replace(", level = 2 : i64", "")
    )


def test_a_sum_without_a_loop() -> None:
    """All its steps stand in a round: nowhere would anything be fetched."""
    weight = np.zeros((4, 96), np.float32)
    program = program_of(
        lambda b, x: b.einsum("mk,kn->mn", x, b.constant(weight)), ((6, 4), "float32")
    )
    script = script_of(program, TARGET)
    assert '"nanoloom.prefetch"' not in script
    pack = line_of(script, "pack")
    match = script[: script.index(pack)].splitlines(keepends=True)[-1]
    word = pack.replace("nanoloom.pack", "nanoloom.prefetch")
    more = (match + re.sub(r"\{.*\}", ONCE, word)).replace("%function1", "%again")
    longer = script.replace(pack, pack + more)
    with pytest.raises(Error, match="no loop reads panels of argument 1: nothing"):
        stage_text(program, "vector", TARGET, script=longer)


def test_how_much_comes_in_a_round_is_a_number_of_the_script() -> None:
    """At most: 2 tiles of 64 rounds, in which a panel of 768 lines would need six."""
    program = program_of(product, ((16, 256), "float32"))
    script = in_fours(script_of(program, TARGET))
    assert "lines = 8 " in script
    for lines, made in ((1, 1), (2, 2), (8, 6)):
        less = script.replace("lines = 8 ", f"lines = {lines} ")
        text = stage_text(program, "vector", TARGET, script=less)
        assert text.count("memref.prefetch") == made


def test_only_panels_are_fetched() -> None:
    program = program_of(product, ((96, 256), "float32"))
    script = script_of(program, TARGET)
    fetch, pack = line_of(script, "prefetch"), line_of(script, "pack")
    number = fetch.split("{argument = ")[1][0]
    other = fetch.replace(f"argument = {number}", "argument = 0")
    handle, own = (x.split("(")[1].split(")")[0] for x in (pack, fetch))
    early = script.replace(fetch, "").replace(pack, fetch.replace(own, handle))
    for edited in (early, script.replace(fetch, other)):
        with pytest.raises(Error) as found:
            stage_text(program, "vector", TARGET, script=edited)
        assert "comes in no panels: it is fetched some steps ahead" in str(found.value)


@pytest.mark.drawn
@pytest.mark.parametrize("op", ["Conv", "ConvInteger"])
@pytest.mark.parametrize("shape", [(8, 17, 2), (8, 17, 3, 3)])
def test_weights_that_are_no_panels(
    op: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """An input as it comes: all its dimensions but the last are summed over."""
    kind = np.float32 if op == "Conv" else np.uint8
    made = np.random.default_rng(3).integers(0, 9, (*shape, 2))
    w = made[..., 0].astype(kind)
    x = np.ones((1, 17, *[9] * (len(shape) - 2)), kind)
    model, feeds = model_of(op, [x, w], {})
    got = nanoloom.compile(model, cache=Cache(tmp_path))(feeds)["y0"]
    sums = w.astype(np.int64).sum(tuple(range(1, w.ndim)))
    assert (got[0].reshape(8, -1) == sums[:, None]).all()


def test_groups_of_a_single_panel_come_one_after_the_other() -> None:
    """Of a weight beyond the second-level cache: a group's tiles ask for the next."""
    weight = np.ones((64, 160, 32), np.float32)
    program = program_of(
        lambda b, x: b.einsum("hwgc,gcf->hwgf", x, b.constant(weight)),
        ((7, 7, 64, 160), "float32"),
    )
    text = stage_text(program, "schedule", by_name("sapphirerapids"))
    assert "nanoloom.prefetch" in text and "level = 2" in text
