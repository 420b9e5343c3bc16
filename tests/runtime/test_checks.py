"""A run that met an index out of range: its status, its sentence, and the next run."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import nanoloom
from nanoloom.binary.table import Check, ProgramTable
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.errors import Error, InputError
from nanoloom.options import CompileOptions
from nanoloom.target.host import host

EXAMPLE = Path(__file__).parents[2] / "examples" / "c" / "main.c"
HEADER = '<ir_version: 9, opset_import: ["": 18, "ai.onnx.ml": 3]>'
OUT_OF_RANGE = 5
W = np.arange(12, dtype=np.float32).reshape(4, 3)

TWICE = """g (float[4, 3] w, int64[1000] a, int64[1000] b) => (float[1000, 3] y) {
  [first] p = Gather(w, a)
  [second] q = Gather(w, b)
  y = Add(p, q)
}"""
SCAN = """g (float[4, 3] w, int64[2, 5] a) => (float[2, 5, 3] y) {
  y = Scan <num_scan_inputs = 1, body = rows (int64[5] row) => (float[5, 3] r) {
    r = Scan <num_scan_inputs = 1, body = one (int64 i) => (float[3] q) {
      [inner] q = Gather(w, i)
    }> (row)
  }> (a)
}"""
LOOP = """g (float[4, 3] w, int64 trips, int64 a) => (float[3] y) {
  goes_on = Constant<value = bool {1}>()
  nothing = Constant<value = float[3] {0, 0, 0}>()
  y, last = Loop <body = b (int64 i, bool c, float[3] s, int64 k) =>
      (bool more, float[3] t, int64 n) {
    one = Constant<value = int64 {1}>()
    ten = Constant<value = int64 {10}>()
    n = Add(k, one)
    [inner] r = Gather(w, k)
    t = Add(s, r)
    more = Less(n, ten)
  }> (trips, goes_on, nothing, a)
}"""
BRANCH = """g (float[4, 3] w, int64[2] a, bool c) => (float[2, 3] y) {
  y = If <then_branch = t () => (float[2, 3] r) { [taken] r = Gather(w, a) },
    else_branch = e () => (float[2, 3] s) {
      far = Constant<value = int64[2] {0, 9}>()
      [other] s = Gather(w, far)
    }> (c)
}"""
UP = """g (float[1, 3] w, float[2] x) => (float[2, 3] y) {
  c = Ceil(x)
  i = Cast<to = 7>(c)
  [table] y = Gather(w, i)
}"""


@pytest.fixture(scope="module")
def cache() -> Cache:
    return Cache.temporary()


Compile = Callable[..., nanoloom.Program]


@pytest.fixture
def compiled(cache: Cache) -> Compile:
    def compile(text: str, threads: int = 1, **more: bool) -> nanoloom.Program:
        model = parser.parse_model(f"{HEADER} {text}")
        return nanoloom.compile(model, threads=threads, cache=cache, **more)

    return compile


def refusal(program: nanoloom.Program, **feeds: object) -> str:
    with pytest.raises(InputError) as caught:
        program({"w": W, **{k: np.asarray(v) for k, v in feeds.items()}})
    return str(caught.value)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_first_node_that_failed_is_named(compiled: Compile, threads: int) -> None:
    program = compiled(TWICE, threads)
    good = np.arange(1000) % 8 - 4
    bad = good.copy()
    bad[[10, 500, 990]] = 5, -7, 6
    first = "node first (Gather): index -7 is outside -4..3"
    second = "node second (Gather): index -7 is outside -4..3"
    for _ in range(20):
        assert refusal(program, a=bad, b=bad) == first
        assert refusal(program, a=good, b=bad) == second
        got = program({"w": W, "a": good, "b": good})["y"]
        np.testing.assert_array_equal(got, 2 * W[good])


def test_threads_see_their_own_indices(compiled: Compile) -> None:
    program, good = compiled(TWICE, 2), np.zeros(1000, np.int64)
    wrong: list[str] = []

    def work(index: int) -> None:
        bad = np.full(1000, index)
        for _ in range(50):
            np.testing.assert_array_equal(
                program({"w": W, "a": good, "b": good})["y"], 2 * W[good]
            )
            told = refusal(program, a=good, b=bad)
            if f"second (Gather): index {index} " not in told:
                wrong.append(told)

    workers = [threading.Thread(target=work, args=(n,)) for n in (4, -5, 99, -99)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_inside_loops(compiled: Compile) -> None:
    program, rows = compiled(SCAN, 2), np.array([[0, 1, 2, 3, -4], [3, 2, 1, 0, -1]])
    np.testing.assert_array_equal(program({"w": W, "a": rows})["y"], W[rows])
    for place in ((0, 0), (0, 4), (1, 2)):
        bad = rows.copy()
        bad[place] = 7
        assert (
            refusal(program, a=bad) == "node inner (Gather): index 7 is outside -4..3"
        )
    np.testing.assert_array_equal(program({"w": W, "a": rows})["y"], W[rows])
    program = compiled(LOOP)
    ends = np.array(4), np.array(0)
    got = program({"w": W, "trips": ends[0], "a": ends[1]})["y"]
    np.testing.assert_array_equal(got, W.sum(0))
    assert "inner (Gather): index 4 is" in refusal(program, trips=5, a=0)
    assert "inner (Gather): index -5 is" in refusal(program, trips=3, a=-5)
    none = program({"w": W, "trips": np.array(0), "a": np.array(100)})["y"]
    assert not none.any()  # a body that never ran read nothing


def test_the_branch_that_is_taken_counts(compiled: Compile) -> None:
    program, far = compiled(BRANCH), np.array([0, 7])
    assert "node taken (Gather): index 7" in refusal(program, a=far, c=True)
    assert "node other (Gather): index 9" in refusal(program, a=far, c=False)
    good = np.array([-1, 2])
    got = program({"w": W, "a": good, "c": np.array(True)})["y"]
    np.testing.assert_array_equal(got, W[good])


def test_unchecked(compiled: Compile, cache: Cache) -> None:
    bad = np.full(1000, 50)
    program = compiled(TWICE, checked=False)
    got = program({"w": W, "a": bad, "b": -bad})["y"]
    np.testing.assert_array_equal(got, np.broadcast_to(W[3] + W[0], (1000, 3)))
    options = CompileOptions(host(), checked=False)
    with pytest.raises(Error, match="checked is True here and False in the options"):
        compiled(TWICE, checked=True, options=options)


def test_a_check_lies_in_the_arena() -> None:
    for offset in (-8, 60, 64):
        with pytest.raises(ValueError, match="outside the arena"):
            ProgramTable((), 64, 0, (), (), checks=(Check(offset, 0, 3, "a", "index"),))


# ---- from C


def test_a_saved_program(tmp_path: Path, compiled: Compile) -> None:
    path = compiled(TWICE).save(tmp_path / "model.so")
    good, bad = np.zeros(1000, np.int64), np.full(1000, 4)
    with nanoloom.load(path, threads=2) as loaded:
        with pytest.raises(InputError, match=r"second \(Gather\): index 4 is outside"):
            loaded({"w": W, "a": good, "b": bad})
        assert loaded({"w": W, "a": good, "b": good})["y"].any()


def test_the_interface(tmp_path: Path, compiled: Compile) -> None:
    path = compiled(TWICE).save(tmp_path / "model.so")
    library = ctypes.CDLL(str(path))
    library.nanoloom_model_create.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(library.nanoloom_model_create(2))
    y, text = np.empty((1000, 3), np.float32), ctypes.create_string_buffer(200)

    def run(*indices: np.ndarray) -> int:
        inputs = (ctypes.c_void_p * 3)(*(x.ctypes.data for x in (W, *indices)))
        outputs = (ctypes.c_void_p * 1)(y.ctypes.data)
        return library.nanoloom_model_run(handle, inputs, outputs)

    def told(status: int, room: int) -> bytes:
        size = ctypes.c_size_t(room)
        length = library.nanoloom_model_explain(handle, status, text, size)
        assert length == len(wanted[status])
        return text.value

    wanted = {
        0: b"no error",
        4: b"another thread is running this handle: create one handle for each thread",
        OUT_OF_RANGE: b"node first (Gather): index 4 is outside -4..3",
    }
    good, bad = np.zeros(1000, np.int64), np.full(1000, 4)
    assert run(good, good) == 0
    assert run(bad, good) == OUT_OF_RANGE
    for status, sentence in wanted.items():
        assert told(status, 200) == sentence
        assert told(status, 6) == sentence[:5]
    assert run(good, good) == 0
    np.testing.assert_array_equal(y, 2 * W[good])
    library.nanoloom_model_destroy(handle)


def test_the_example_program_says_it(tmp_path: Path, compiled: Compile) -> None:
    """Its second input is 0, 0.25: rounded up, no place of one row."""
    path = compiled(UP).save(tmp_path / "model.so")
    compiler = [shutil.which("cc")] if shutil.which("cc") else [str(zig()), "cc"]
    words = [str(EXAMPLE), str(path), f"-I{tmp_path}", "-Wl,-rpath,$ORIGIN"]
    subprocess.run([*compiler, *words, "-o", str(tmp_path / "main")], check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "node table (Gather): index 1 is outside -1..0\n"


@pytest.mark.parametrize("kind", ["int64", "float"])
def test_a_category_that_is_not_listed(compiled: Compile, kind: str) -> None:
    """zeros = 0: "if a category is not found, the operator will fail"."""
    text = f"""g ({kind}[2, 2] x) => (float[2, 2, 3] y) {{
      [coded] y = ai.onnx.ml.OneHotEncoder <cats_int64s = [7, 1, 3], zeros = 0> (x)
    }}"""
    x = np.array([[1, 7], [3, 3]], np.int64 if kind == "int64" else np.float32)
    program = compiled(text)
    right = x[..., None] == np.array([7, 1, 3])
    np.testing.assert_array_equal(program({"x": x})["y"], right)
    x[0, 1] = 8
    with pytest.raises(InputError, match=r"not listed: place 3 is outside 0\.\.2"):
        program({"x": x})
    assert not compiled(text.replace("zeros = 0", "zeros = 1"))({"x": x})["y"][
        0, 1
    ].any()


def test_more_elements_than_there_are(compiled: Compile) -> None:
    text = """g (float[4] x, int64[1] k) => (float[n] v, int64[n] i) {
      v, i = TopK (x, k)
    }"""
    x, program = np.array([3, 1, 4, 2], np.float32), compiled(text)
    assert program({"x": x, "k": np.array([4])})["i"].tolist() == [2, 0, 3, 1]
    with pytest.raises(InputError, match=r"TopK.*: k 5 is outside 0\.\.4$"):
        program({"x": x, "k": np.array([5])})
