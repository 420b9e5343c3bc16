"""The forms of loops over vectors: what the inner loop is of, and who is refused.

tests/runtime/test_loop_forms.py has the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.assembly import inner_loops
from nanoloom.errors import Error
from nanoloom.nest.extent import Lanes
from nanoloom.notation import Buffer, Computation, axes, computation
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import (
    Directive,
    Pipeline,
    Schedule,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.target import Target, by_name
from nanoloom.target.host import host
from nanoloom.target.tail_forms import (
    FORMS,
    MASKED,
    MASKED_REMAINDER,
    SCALAR_REMAINDER,
    VECTOR_LENGTH,
)
from tests.notation.programs import EPSILON, kernels, normal
from tests.vector.kernel_harness import executable, stage_text

M, N = 3, 517
RVV, SVE = "rv64gcv", "armv9-sve2"


def pointwise() -> Computation:
    (i,) = axes("i")
    x, z, y = Buffer("x", (N,)), Buffer("z", (N,)), Buffer("y")
    y[i] = (x[i] + z[i]) * x[i]
    return computation(y)


def by_rows() -> Computation:
    i, j = axes("i j")
    x, b, y = Buffer("x", (64, N)), Buffer("b", (N,)), Buffer("y", (64, N))
    y[i, j] = (x[i, j] + b[j]) * x[i, j]
    return computation(y)


def sums() -> Computation:
    i, j = axes("i j")
    x, y = Buffer("x", (M, N)), Buffer("y", (M,))
    y[i] += x[i, j] * x[i, j]
    return computation(y)


def product() -> Computation:
    i, j, k = axes("i j k")
    a, b, y = Buffer("a", (33, 70)), Buffer("b", (70, N)), Buffer("y", (33, N))
    y[i, j] += a[i, k] * b[k, j]
    return computation(y)


def turned() -> Computation:
    i, j = axes("i j")
    x, y = Buffer("x", (N, M)), Buffer("y", (M, N))
    y[i, j] = x[j, i] + 1
    return computation(y)


def of_form(name: str, form: str) -> Target:
    """A target with another form of loops."""
    target = by_name(name)
    return replace(target, vector=replace(target.vector, form=form))


def loops_of(made: Computation, name: str, form: str) -> list[str]:
    """Its inner loops by what their instructions are called, blanks between."""
    text = stage_text(kernels(made), "asm", of_form(name, form))
    return ["\n".join(lines) for lines in inner_loops(text)]


# What the inner loops of each form have, and what none of them has.
INNER = {
    (RVV, MASKED): (
        (r"vmsltu.vx\tv0", r"vle32.*v0\.t", r"vse32.*v0\.t"),
        r"vset|blt.*\n.*mv",
    ),
    (RVV, MASKED_REMAINDER): ((r"vl4re32", r"vs4r"), r"v0\.t|vset|flw"),
    (RVV, SCALAR_REMAINDER): ((r"vl4re32", r"flw.*\n.*\n?.*flw"), r"v0\.t|vset"),
    (RVV, VECTOR_LENGTH): ((r"vsetvli\t\w+, \w+, e32, m4, ta", r"vse32"), r"v0\.t"),
    (SVE, MASKED): ((r"whilelo\tp\d", r"ld1w.*p\d/z", r"st1w"), "cmpgt"),
    (SVE, MASKED_REMAINDER): ((r"ld1w", r"st1w", r"incw"), "while|cmpgt"),
    (SVE, SCALAR_REMAINDER): ((r"ld1w", r"ldr\ts\d"), "while|cmpgt"),
}


@pytest.mark.parametrize(("name", "form"), INNER)
def test_an_inner_loop_of_each_form(name: str, form: str) -> None:
    has, not_ = INNER[name, form]
    loops = "\n\n".join(loops_of(pointwise(), name, form))
    for each in has:
        assert re.search(each, loops), loops
    assert not re.search(not_, loops)


def test_a_round_of_a_length_computes_one_place() -> None:
    """Where a row begins is known in front of its loop."""
    loops = [x for x in loops_of(by_rows(), RVV, VECTOR_LENGTH) if "vse32" in x]
    assert loops
    for loop in loops:
        assert len(loop.splitlines()) == 13 and loop.count("slli") == 1, loop


@pytest.mark.parametrize(
    ("name", "form", "has"),
    [
        (RVV, MASKED, r"vfmacc.vv.*v0\.t"),
        (RVV, VECTOR_LENGTH, r"e32, m4, tu, ma\nvfmacc.vv\tv\d+, v\d+, v\d+\n"),
        (SVE, MASKED, r"fmla\tz\d+.s, p\d/m"),
    ],
)
def test_sums_leave_lanes_that_do_not_count(name: str, form: str, has: str) -> None:
    """By the mask or the length of the addition itself: nothing is put together."""
    loops = [x for x in loops_of(sums(), name, form) if re.search("vf|fml", x)]
    assert loops
    for loop in loops:
        assert re.search(has, loop), loop
        assert not re.search(r"vmerge|\bsel\t", loop)


@pytest.mark.parametrize(
    ("name", "form", "products", "has"),
    [
        (RVV, VECTOR_LENGTH, 6, r"vfmacc"),
        (SVE, MASKED, 24, r"fml?a"),
    ],
)
def test_tiles_of_products_stay_in_registers(
    name: str, form: str, products: int, has: str
) -> None:
    """The masks of a tile's columns are made outside of its sum's loop."""
    loop = max(loops_of(product(), name, form), key=lambda x: len(re.findall(has, x)))
    assert len(re.findall(has, loop)) >= products
    assert not re.search(r"whilelo|vmslt|\bsp\b", loop)


def test_the_form_is_a_word_and_prints() -> None:
    """Chosen from the target, said in the nest and in the script, and said again."""
    (kernel,) = kernels(pointwise()).kernels.values()
    target = of_form(RVV, VECTOR_LENGTH)
    chosen = choose(kernel.nest, target)
    assert "form='vector length'" in str(chosen)
    assert "(i, vector length)" in str(chosen.apply(kernel.nest))
    script = chosen.to_transform(kernel.nest)
    assert 'form = "vector length"}' in script
    usual = script.replace('"vector length"', f'"{MASKED_REMAINDER}"')
    program = kernels(pointwise())
    assert "vsetvli" in stage_text(program, "asm", target, script=script)
    by_word = stage_text(program, "asm", target, script=usual)
    assert by_word == stage_text(program, "asm", by_name(RVV))


def test_targets_have_the_usual_form() -> None:
    for name in (RVV, SVE, "x86-64-v3"):
        assert by_name(name).vector.form == MASKED_REMAINDER
        (kernel,) = kernels(pointwise()).kernels.values()
        assert "form" not in str(choose(kernel.nest, by_name(name)))


@pytest.mark.parametrize("form", [MASKED, VECTOR_LENGTH])
def test_lanes_that_are_taken_one_by_one_keep_the_usual_form(form: str) -> None:
    (kernel,) = kernels(turned()).kernels.values()
    chosen = choose(kernel.nest, of_form(RVV, form))
    assert "Vectorize" in str(chosen) and "form" not in str(chosen)


FOUR = Lanes(4, scalable=True)


@pytest.mark.parametrize(
    ("made", "words", "said"),
    [
        (pointwise, (Vectorize("y", "i", FOUR, form="half"),),
         "form is 'half': masked, masked remainder, scalar remainder, vector length"),
        (pointwise, (Vectorize("y", "i", Lanes(8), form=VECTOR_LENGTH),),
         "vectors of 8 have one length, on every machine; Lanes(4, scalable=True)"),
        (sums, (Vectorize("y", "j", FOUR, 2, VECTOR_LENGTH),),
         "a round asks for one length, not for 2"),
        (pointwise, (Vectorize("y", "i", FOUR, form=VECTOR_LENGTH),
                     UnrollAndJam("y", "i", 2)),
         "a round asks for one length, not for 2"),
        (turned, (Vectorize("y", "j", FOUR, form=MASKED),),
         "y takes numbers one by one, not along j: no mask says which of them count"),
        (product, (Vectorize("y", "j", FOUR), Vectorize("y", "i", Lanes(2), 1, MASKED)),
         "the form of vectors is said of j, the innermost"),
        (sums, (Vectorize("y", "j", FOUR, form=MASKED), Pipeline("y", "j")),
         "vectors of y have the form 'masked', in which every round may be a part"),
    ],
)  # fmt: skip
def test_what_means_nothing(
    made: Callable[[], Computation], words: tuple[Directive, ...], said: str
) -> None:
    (kernel,) = kernels(made()).kernels.values()
    with pytest.raises(Error) as refused:
        Schedule(words).apply(kernel.nest)
    assert said in str(refused.value)


def test_only_risc_v_is_asked_for_lengths() -> None:
    words = Schedule((Vectorize("y", "i", FOUR, form=VECTOR_LENGTH),))
    with pytest.raises(Error, match=r"is asked for no length of vectors: that is RISC"):
        stage_text(kernels(pointwise()), "vector", by_name(SVE), script=words)


@pytest.mark.parametrize("form", [MASKED_REMAINDER, VECTOR_LENGTH])
@pytest.mark.parametrize("name", ["x86-64-v4", "aarch64", "riscv64", "power9"])
def test_scalable_vectors_where_there_are_none(name: str, form: str) -> None:
    """LLVM would end the process."""
    target = by_name(name)
    said = (
        rf"line \d: no vectors of {name} are as wide as the machine says: SVE and RVV"
    )
    words = Schedule((Vectorize("y", "i", FOUR, form=form),))
    with pytest.raises(Error, match=said):
        stage_text(kernels(pointwise()), "asm", target, script=words)


@pytest.mark.parametrize("name", ["x86-64-v4", "aarch64", "riscv64", SVE])
def test_a_target_has_forms_that_it_has_instructions_for(name: str) -> None:
    """No other form is made in its place without a word."""
    said = f"{name} is asked for no length of vectors: .* vsetvli; in loops of the form"
    with pytest.raises(Error, match=said):
        of_form(name, VECTOR_LENGTH)
    with pytest.raises(Error, match=f"is 'half': {', '.join(FORMS)} are known"):
        of_form(name, "half")
    for form in (MASKED, MASKED_REMAINDER, SCALAR_REMAINDER):
        assert of_form(name, form).vector.form == form


@pytest.mark.parametrize("form", [MASKED, SCALAR_REMAINDER])
def test_nothing_is_touched_behind_the_end(form: str) -> None:
    """Here, between guard pages: vectors and what is left of them."""
    x, z = normal(N), normal(N, seed=1)
    target = replace(host(), vector=replace(host().vector, form=form))
    (y,) = executable(kernels(pointwise()), target)(x, z)
    wide = (x.astype(np.float64) + z) * x
    assert (abs(y - wide) <= 3 * EPSILON * (abs(x) + abs(z)) * abs(x)).all()
    a = normal(M, N)
    (s,) = executable(kernels(sums()), target)(a)
    squares = (a.astype(np.float64) ** 2).sum(1)
    assert (abs(s - squares) <= (N + 2) * EPSILON * squares).all()
