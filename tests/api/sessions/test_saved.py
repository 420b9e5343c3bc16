"""Sessions in libraries: C programs say a text in pieces, Python loads the file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import nanoloom
from nanoloom.api.program import Program
from nanoloom.api.sessions.session import Session
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.errors import Error, InputError
from nanoloom.target.by_name import levels
from nanoloom.target.host import host
from tests.api.sessions import models
from tests.api.sessions.test_session import BOUND, say

MOST = 60
PIECES = [5, 1, 1, 6, 1, 2, *[1] * 20, 3, 1]
TOTAL = sum(PIECES)
MAIN = Path(__file__).parent / "main.c"
EXAMPLE = Path(__file__).parents[3] / "examples" / "c" / "session.c"


@pytest.fixture(scope="module")
def free(cache: Cache) -> Program:
    """Without a bound of what is kept."""
    return nanoloom.compile(models.decoder(), threads=1, cache=cache)


@pytest.fixture(scope="module")
def bounded(cache: Cache) -> Program:
    dims = {"past": (1, MOST)}
    return nanoloom.compile(models.decoder(), threads=1, cache=cache, dims=dims)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, bounded: Program) -> Path:
    return bounded.save(tmp_path_factory.mktemp("shared") / "decoder.so", session=True)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, free: Program) -> Path:
    output = tmp_path_factory.mktemp("static") / "decoder.a"
    return free.save(output, form="static", session=True)


LIKELY = """
g (int64[batch, sequence] input_ids, float[batch, past, 9] past_key)
    => (float[batch, sequence, 9] logits, float[batch, total, 9] present_key)
{
    new = Gather(table, input_ids)
    present_key = Concat<axis = 1>(past_key, new)
    axis = Constant<value = int64[1] {1}>()
    all = ReduceSum(present_key, axis)
    zero = Constant<value = float {0}>()
    none = Mul(new, zero)
    logits = Add(none, all)
}
"""
CHANGED = """
g (float[new, 4] x, float[past, 4] past_key)
    => (float[new, 4] y, float[total, 4] present_key)
{ y = Relu(x) k = Concat<axis = 0>(past_key, x) present_key = Neg(k) }
"""


def built(library: Path, source: Path = MAIN) -> Path:
    """A C program beside the library."""
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{library.parent}"]
    links = [str(library), "-Wl,-rpath,$ORIGIN", "-lm", "-lpthread"]
    command = [str(zig()), "cc", *flags, str(source), *links, "-o", "main"]
    subprocess.run(command, cwd=library.parent, check=True)
    return library.parent / "main"


@pytest.fixture(scope="module")
def shared_main(library: Path) -> Path:
    return built(library)


@pytest.fixture(scope="module")
def static_main(archive: Path) -> Path:
    return built(archive)


def likely() -> tuple[onnx.ModelProto, np.ndarray]:
    """A model, and the table of its words: a word's logits are the sum of all rows."""
    model = parser.parse_model(models.HEAD_TEXT + LIKELY)
    table = np.random.default_rng(3).standard_normal((9, 9)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(table, "table"))
    return model, table


def text(length: int) -> tuple[np.ndarray, np.ndarray]:
    """What main.c says."""
    i = np.arange(length)
    mask = np.where(i % 5, 0, -50).astype(np.float32)
    return ((7 * i * i + 3 * i) % models.WORDS)[None], mask[None]


def said(main: Path, *words: object) -> tuple[np.ndarray, str]:
    """The numbers of a C program, and what it prints."""
    out = main.parent / "logits"
    command = [main, out, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    numbers = np.fromfile(out, np.float32).reshape(1, -1, models.WORDS)
    return numbers, done.stdout


@pytest.mark.parametrize("form", ["shared", "static"])
def test_every_token_from_c(
    request: pytest.FixtureRequest, free: Program, form: str
) -> None:
    """As a model without a cache, and as the session of Python, has them."""
    main: Path = request.getfixturevalue(f"{form}_main")
    got, told = said(main, *PIECES)
    assert told == f"{TOTAL} tokens"
    wanted = models.whole(*text(TOTAL))["logits"]
    assert np.abs(got - wanted).max() <= BOUND
    assert np.abs(np.roll(got, 1, axis=1) - wanted).max() > BOUND
    session = free.session()
    pieces = [say(session, *text(TOTAL), count) for count in PIECES]
    assert np.abs(got - np.concatenate(pieces, 1)).max() <= BOUND


def test_back_and_on(static_main: Path) -> None:
    """What was forgotten is said again, behind what was not; 0 begins anew."""
    wanted, _ = said(static_main, *PIECES)
    again, told = said(static_main, *PIECES, "r13", 6, *[1] * 7, "r0", 4)
    assert told == "4 tokens"
    assert (again[:, :TOTAL] == wanted).all()
    assert np.abs(again[:, TOTAL:-4] - wanted[:, 13:26]).max() <= BOUND
    assert np.abs(again[:, -4:] - wanted[:, :4]).max() <= BOUND


@pytest.mark.parametrize("form", ["shared", "static"])
def test_memory_stays(request: pytest.FixtureRequest, form: str) -> None:
    """Not a page more for a token, once there was room for as many."""
    main: Path = request.getfixturevalue(f"{form}_main")
    words = ["m", "r3", *[1] * 50, "r3", *[1] * 50, "m"]
    _, told = said(main, 9, 1, "a60", "m", "r0", 3, *[1] * 50, *words)
    _, first, second, *_ = told.split()
    assert int(first) > 0 and first == second


def test_refusals_from_c(shared_main: Path) -> None:
    """Each in a sentence; the handle is as it was, and goes on."""
    other = "tokens of other sizes are kept: rewind the handle to none of them first"
    words = ["a9", "r1", 61, 5, "r6", "b3", 1, "b1", 54, "a61", 2, 1, 1, "r0"]
    got, told = said(shared_main, *words, "b2", 3)
    full = f"tokens are kept, and at most {MOST} can be: rewind the handle, or give"
    assert told.splitlines() == [
        "a9: the model's sizes have no numbers yet: resize the handle",
        "r1: so many tokens are not kept",
        f"61: 0 {full} it fewer",
        "r6: so many tokens are not kept",
        f"1: {other}",
        f"a61: 59 {full} it fewer",
        f"2: 59 {full} it fewer",
        f"1: 60 {full} it fewer",
        "3 tokens",
    ]
    wanted = models.whole(*text(MOST))["logits"]
    assert np.abs(got[:, :MOST] - wanted).max() <= BOUND
    assert got.shape[1] == MOST + 2 * 3


def test_where_positions_end(static_main: Path) -> None:
    """What fails adds nothing, and leaves the handle as good as it was."""
    got, told = said(static_main, 69, 1, 1, "r69", 1)
    first, second = told.splitlines()
    assert first.startswith("1: positions") or "70 is outside -70..69" in first
    assert second == "70 tokens" and (got[:, 69] == got[:, 70]).all()


def test_the_example_program(tmp_path: Path, cache: Cache) -> None:
    """It says what the likeliest words of the whole text are, one by one."""
    model, table = likely()
    program = nanoloom.compile(model, threads=1, cache=cache)
    library = program.save(tmp_path / "decoder.so", session=True)
    main = built(library, EXAMPLE)
    done = subprocess.run([main, "12", "3", "1", "4"], capture_output=True, check=True)
    ids = [3, 1, 4]
    for _ in range(12):
        ids.append(int(table[ids].cumsum(0)[-1].argmax()))
    assert list(map(int, done.stdout.split())) == ids[3:]
    again = subprocess.run([main, "1", "9"], capture_output=True, check=False)
    assert again.returncode == 1 and b"9 is outside -9..8" in again.stderr


def test_several_levels(tmp_path: Path, cache: Cache) -> None:
    """The bound holds in each of them."""
    arch = host().arch
    names = "x86-64-v2,x86-64-v3" if arch == "x86_64" else arch
    model, table = likely()
    dims = {"past": (1, 20)}
    program = nanoloom.compile(model, threads=1, cache=cache, dims=dims)
    output = tmp_path / "decoder.so"
    library = program.save(output, session=True, levels=levels(names))
    session = nanoloom.load(library).session()
    made = session({"input_ids": np.array([[3, 1, 4]])})["logits"]
    assert np.abs(made[0, 2] - table[[3, 1, 4]].sum(0)).max() <= BOUND
    with pytest.raises(InputError, match="3 tokens are kept, and at most 20 can be"):
        session({"input_ids": np.zeros((1, 18), np.int64)})


def test_python_loads_the_same_file(library: Path, shared_main: Path) -> None:
    """The numbers of C, bit by bit; a bound in a sentence."""
    wanted, _ = said(shared_main, *PIECES)
    loaded = nanoloom.load(library, threads=2)
    with pytest.raises(Error, match="keeps tokens between calls; call what session"):
        loaded({})
    session: Session = loaded.session(capacity=7)
    pieces = [say(session, *text(TOTAL), count) for count in PIECES]
    assert (np.concatenate(pieces, 1) == wanted).all()
    session.rewind(13)
    assert np.abs(say(session, *text(TOTAL), 4) - wanted[:, 13:17]).max() <= BOUND
    assert session.past()["past_key_values_0_key"].shape == (1, 2, 17, 8)
    with pytest.raises(InputError, match="17 tokens are kept, and at most 60 can be"):
        say(session, *text(90), 44)
    ids, mask = text(18)
    with pytest.raises(InputError, match="not what the others make it"):
        session({"input_ids": ids[:, 17:], "attention_mask": mask[:, :9]})
    with pytest.raises(InputError, match=r"\[1, 2, 8\] is kept of each token"):
        two = np.repeat(ids[:, 17:], 2, 0), np.repeat(mask, 2, 0)
        session({"input_ids": two[0], "attention_mask": two[1]})


def test_another_batch_behind_a_rewind_in_python(library: Path) -> None:
    session = nanoloom.load(library, threads=1).session()
    for batch in (1, 2):
        ids, mask = (np.repeat(x, batch, 0) for x in text(4))
        made = session({"input_ids": ids, "attention_mask": mask})["logits"]
        assert len(made) == batch and (made == made[:1]).all()
        session.rewind(0)


def test_a_session_ends_with_its_library(library: Path) -> None:
    """Also at the sizes of the call before, whose threads are gone as well."""
    with nanoloom.load(library, threads=2) as loaded:
        session: Session = loaded.session()
        say(session, *text(TOTAL), 2)
        say(session, *text(TOTAL), 1)
    for count in (1, 3):
        session.rewind(2)
        with pytest.raises(Error, match="closed at the end of its `with`; load it"):
            say(session, *text(TOTAL), count)
    with pytest.raises(Error, match="closed at the end of its `with`; load it"):
        loaded.session()


def test_the_bound_in_python(bounded: Program) -> None:
    session = bounded.session()
    say(session, *text(90), MOST - 2)
    with pytest.raises(InputError, match=f"58 tokens are kept, and at most {MOST} can"):
        say(session, *text(90), 3)
    say(session, *text(90), 2)
    assert session.length == MOST


def test_the_header(library: Path, archive: Path) -> None:
    bounded, free = (x.with_suffix(".h").read_text() for x in (library, archive))
    for text_of in (bounded, free):
        assert " * input 1: attention_mask, f32[batch, past + sequence]\n" in text_of
        assert " * keeps 0: present_0_key, f32[past + sequence, batch, 2, 8]" in text_of
        assert "#define NANOLOOM_DECODER_INPUTS 2\n" in text_of
        assert "NANOLOOM_DECODER_SIZES = 2\n" in text_of
        assert "SIZE_PAST" not in text_of
    assert f"There are at most {MOST}:" in bounded
    assert "room for\n * twice as many whenever it is full." in free


def test_what_cannot_be_saved(tmp_path: Path, free: Program, cache: Cache) -> None:
    output = tmp_path / "decoder.so"
    with pytest.raises(Error, match="form is 'executable', and sessions are for lib"):
        free.save(tmp_path / "decoder", form="executable", session=True)
    model = models.decoder()
    known = nanoloom.compile(model, cache=cache, dims={"past": 9})
    with pytest.raises(InputError, match="past is how much is kept, and has a number"):
        known.save(output, session=True)
    other = nanoloom.compile(
        parser.parse_model(models.HEAD_TEXT + CHANGED), cache=cache
    )
    with pytest.raises(InputError, match=r"cannot grow in place: .* it is made by Neg"):
        other.save(output, session=True)
    with pytest.raises(InputError, match="a is no input"):
        free.save(output, session={"a": "present_0_key"})
    assert not list(tmp_path.iterdir())
    plain = "g (float[3] x) => (float[3] y) { y = Relu(x) }"
    model = parser.parse_model(models.HEAD_TEXT + plain)
    nanoloom.compile(model, cache=cache).save(output)
    with pytest.raises(Error, match="it was saved without a session; save it with"):
        nanoloom.load(output).session()
