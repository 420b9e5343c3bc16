"""The shared library for C: its header, its interface, an example program."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.binary.header import c_name, header_h
from nanoloom.binary.shared import write_shared_library
from nanoloom.binary.table import Buffer, ProgramTable, Step
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.errors import Error, Unsupported
from nanoloom.interface.tensor import Element, Space, Tensor
from nanoloom.runtime.library import Library
from tests.runtime.native import TRIPLE, Block, expected, kernels, table

EXAMPLE = Path(__file__).parents[2] / "examples" / "c"
TASKS = 345
COUNT = 3 * TASKS
WEIGHTS = np.random.default_rng(5).standard_normal(COUNT).astype(np.float32)
OK, NO_HANDLE, NULL_POINTER, MISALIGNED, BUSY = range(5)


def write(folder: Path, cache: Cache, name: str = "model") -> Path:
    output = folder / f"{name}.so"
    header = write_shared_library(
        kernels(),
        table(TASKS),
        Block(WEIGHTS.tobytes()),
        output,
        name,
        triple=TRIPLE,
        cache=cache,
    )
    assert header == folder / f"{name}.h"
    assert sorted(p.name for p in folder.iterdir()) == [f"{name}.h", f"{name}.so"]
    return output


class Model:
    """The public functions of the library, as a C program sees them."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        for name, result in (
            ("create", ctypes.c_void_p),
            ("create_on", ctypes.c_void_p),
            ("error", ctypes.c_char_p),
            ("input", ctypes.c_void_p),
            ("output", ctypes.c_void_p),
        ):
            self.function(name).restype = result

    def function(self, name: str) -> Callable[..., int]:
        return getattr(self.library, f"nanoloom_model_{name}")

    def run(self, handle: int | None, inputs: list[int], outputs: list[int]) -> int:
        given = (ctypes.c_void_p * len(inputs))(*inputs)
        taken = (ctypes.c_void_p * len(outputs))(*outputs)
        return self.function("run")(ctypes.c_void_p(handle), given, taken)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> Model:
    return Model(write(tmp_path_factory.mktemp("model"), cache))


def arrays() -> list[np.ndarray]:
    a, b = np.random.default_rng(6).standard_normal((2, COUNT)).astype(np.float32)
    return [a, b, np.zeros_like(a), np.zeros_like(a)]


def test_only_public_names_are_shown(tmp_path: Path, cache: Cache) -> None:
    path = write(tmp_path, cache)
    library = ctypes.CDLL(str(path))
    public = ("create", "create_on", "pool", "limit", "run", "destroy", "error")
    for name in public:
        assert library[f"nanoloom_model_{name}"]
    hidden = ("nanoloom_run", "nanoloom_pool_create", "nanoloom_program", "add_f32")
    for name in (*hidden, "nanoloom_parameter_block", "nanoloom_parameters"):
        with pytest.raises(AttributeError):
            library[name]


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_runs(model: Model, threads: int) -> None:
    handle = model.function("create")(threads)
    a, b, out, total = arrays()
    addresses = [array.ctypes.data for array in (a, b, out, total)]
    assert model.run(handle, addresses[:2], addresses[2:]) == OK
    want = expected(a, b, WEIGHTS)
    assert (out == want[0]).all()
    assert (total == want[1]).all()
    model.function("destroy")(ctypes.c_void_p(handle))
    model.function("destroy")(None)


@pytest.mark.parametrize("threads", [-1, -(2**31), 1025, 100_000, 2**31 - 1])
def test_numbers_of_threads_that_are_refused(model: Model, threads: int) -> None:
    assert model.function("create")(threads) is None


def test_every_misuse_has_a_status(model: Model) -> None:
    handle = model.function("create")(2)
    a, b, out, total = (array.ctypes.data for array in arrays())
    assert model.run(None, [a, b], [out, total]) == NO_HANDLE
    assert model.run(handle, [a, 0], [out, total]) == NULL_POINTER
    assert model.run(handle, [a, b], [0, total]) == NULL_POINTER
    assert model.run(handle, [a, b + 2], [out, total]) == MISALIGNED
    assert model.run(handle, [a, b], [out, total + 1]) == MISALIGNED
    null = ctypes.c_void_p(None)
    assert model.function("run")(ctypes.c_void_p(handle), null, null) == NULL_POINTER
    texts = {model.function("error")(status) for status in range(-1, 13)}
    assert b"no error" in texts
    assert b"unknown status" in texts
    assert len(texts) == 14
    model.function("destroy")(ctypes.c_void_p(handle))


def threads_here() -> set[str]:
    return {path.name for path in Path("/proc/self/task").iterdir()}


def started(count: int, before: set[str]) -> bool:
    """Whether so many threads more are there, when those that end are gone."""
    end = time.monotonic() + 5
    while len(threads_here() - before) != count and time.monotonic() < end:
        time.sleep(0.001)
    return len(threads_here() - before) == count


def test_handles_share_one_pool(model: Model) -> None:
    """Ten of three threads start two workers, also when they run at once."""
    before = threads_here()
    handles = [model.function("create")(3) for _ in range(10)]
    assert started(2, before)
    want = expected(*arrays()[:2], WEIGHTS)[1]

    def run(handle: int) -> bool:
        a, b, out, total = arrays()
        addresses = [array.ctypes.data for array in (a, b, out, total)]
        ran = [model.run(handle, addresses[:2], addresses[2:]) for _ in range(20)]
        return set(ran) == {OK} and (total == want).all()

    with ThreadPoolExecutor(10) as callers:
        assert all(callers.map(run, handles))
    handles.append(model.function("create")(5))
    assert started(4, before)
    for handle in handles:
        model.function("destroy")(ctypes.c_void_p(handle))
    assert started(0, before)
    again = model.function("create")(2)
    assert run(again)
    assert started(1, before)
    model.function("destroy")(ctypes.c_void_p(again))


def test_the_callers_own_pool_and_a_busy_handle(model: Model) -> None:
    """The pool below asks for a second run of the handle in the middle of the first."""
    task = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    kind = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, task, ctypes.c_void_p, ctypes.c_int64
    )
    a, b, out, total = arrays()
    addresses = [array.ctypes.data for array in (a, b, out, total)]
    seen: list[tuple[int | None, int]] = []
    statuses: list[int] = []

    def parallel(
        context: int | None, do: Callable[..., None], argument: int, tasks: int
    ) -> None:
        seen.append((context, tasks))
        statuses.append(model.run(handle, addresses[:2], addresses[2:]))
        middle = tasks // 3
        late = threading.Thread(target=do, args=(argument, 0, middle))
        late.start()
        do(argument, middle, tasks)
        late.join()

    pool = kind(parallel)
    handle = model.function("create_on")(pool, ctypes.c_void_p(77))
    assert model.run(handle, addresses[:2], addresses[2:]) == OK
    assert (total == expected(a, b, WEIGHTS)[1]).all()
    assert seen == [(77, TASKS)] * 3
    assert statuses == [BUSY] * 3
    model.function("destroy")(ctypes.c_void_p(handle))


def test_describes_its_tensors(model: Model) -> None:
    assert model.function("input")(1)
    assert model.function("output")(1)
    for index in (-1, 2):
        assert model.function("input")(index) is None
        assert model.function("output")(index) is None


def test_python_loads_the_same_file(tmp_path: Path, cache: Cache) -> None:
    library = Library(write(tmp_path, cache))
    assert library.inputs == table(TASKS).inputs
    a, b, out, total = arrays()
    with library.create(2) as instance:
        instance.run([a, b], [out, total])
    assert (total == expected(a, b, WEIGHTS)[1]).all()


def test_the_example_program(tmp_path: Path, cache: Cache) -> None:
    write(tmp_path, cache)
    compiler = [shutil.which("cc")] if shutil.which("cc") else [str(zig()), "cc"]
    flags = ["-O2", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    flags += [f"-I{tmp_path}", "-Wl,-rpath,$ORIGIN"]
    program = tmp_path / "main"
    sources = [str(EXAMPLE / "main.c"), str(tmp_path / "model.so")]
    subprocess.run([*compiler, *flags, *sources, "-o", str(program)], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    x = (np.arange(COUNT) % 7 * 0.25).astype(np.float32)
    want = expected(x, x, WEIGHTS)
    lines = done.stdout.splitlines()
    for line, name, values in zip(lines, ("out", "total"), want, strict=True):
        label, *numbers = line.split()
        assert label == f"{name}:"
        assert numbers == [f"{value:g}" for value in values[:8].tolist()]


STRANGE = ProgramTable(
    steps=(Step("k", 1, (Buffer(Space.INPUT),), "step */ \\"),),
    arena_bytes=0,
    parameter_bytes=0,
    inputs=(Tensor('*/ ids "??/\\', Element.I64, (1, 128)),),
    outputs=(Tensor("größe\n#error", Element.BF16, ()),),
)


@pytest.mark.parametrize(
    "language", [("-xc", "-std=c99"), ("-xc", "-std=c23"), ("-xc++", "-std=c++11")]
)
def test_the_header_compiles(
    tmp_path: Path, cache: Cache, language: tuple[str, str]
) -> None:
    names = ["bert-base */", "9.lives", "tensor", "pool", "task", "ü"]
    includes = []
    for index, name in enumerate(names):
        header = tmp_path / f"{index}.h"
        header.write_text(header_h(STRANGE, name), "utf-8")
        includes.append(f'#include "{header.name}"\n' * 2)
    uses = [f"nanoloom_{c_name(name)}_create(1);" for name in names]
    source = tmp_path / "all.c"
    source.write_text("".join(includes) + f"void f(void) {{ {' '.join(uses)} }}\n")
    flags = [*language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-target"]
    command = [str(zig()), "cc", "-c", *flags, "x86_64-linux-gnu", "all.c"]
    own = str(tmp_path / "zig")
    places = {"ZIG_GLOBAL_CACHE_DIR": own, "ZIG_LOCAL_CACHE_DIR": own}
    done = subprocess.run(
        [*command, "-Wno-missing-prototypes", "-o", "all.o"],
        cwd=tmp_path,
        env=places,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_header_tells_names_types_and_shapes() -> None:
    text = header_h(table(TASKS), "bert-base")
    assert "input 0: a, f32[1035], 4140 bytes" in text
    assert "output 1: total, f32[1035], 4140 bytes" in text
    assert "#define NANOLOOM_BERT_BASE_INPUTS 2" in text
    assert "int nanoloom_bert_base_run(" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("bert-base", "bert_base"),
        ("a  b", "a_b"),
        ("7b", "7b"),
        ("größe", "gr_u00f6_u00df_e"),
        ("ü", "u00fc"),
        ("ö", "u00f6"),
        ("模型-2", "u6a21_u578b_2"),
        ("\U0001f642", "u1f642"),
        ("", "model"),
        ("--", "model"),
        ("pool", "pool_model"),
        ("Tensor_2", "Tensor_2_model"),
    ],
)
def test_names_in_c(name: str, want: str) -> None:
    assert c_name(name) == want


def test_parameters_of_another_size(tmp_path: Path, cache: Cache) -> None:
    with pytest.raises(ValueError, match="0 bytes of parameters, not 4140"):
        write_shared_library(
            kernels(),
            table(TASKS),
            None,
            tmp_path / "a.so",
            "a",
            triple=TRIPLE,
            cache=cache,
        )


def test_no_file_is_left_when_a_kernel_is_defined_twice(
    tmp_path: Path, cache: Cache
) -> None:
    code = kernels()
    with pytest.raises(Error, match=r"duplicate symbol: add_f32"):
        write_shared_library(
            [*code, code[0]],
            table(TASKS, parameter_bytes=0),
            None,
            tmp_path / "a.so",
            "a",
            triple=TRIPLE,
            cache=cache,
        )
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_its_own_header(tmp_path: Path, cache: Cache) -> None:
    with pytest.raises(Error, match=r"cannot end in \.h"):
        write_shared_library(
            kernels(),
            table(TASKS, parameter_bytes=0),
            None,
            tmp_path / "a.h",
            "a",
            triple=TRIPLE,
            cache=cache,
        )


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step("no name", 1, (), "s"), "is no C name"),
        (Step("k", 0, (), "s"), "0 tasks"),
        (Step("k", 1 << 31, (), "s"), "s: has more elements than one run"),
        (Step("k", 1, (Buffer(Space.ARENA, 65),), "s"), "outside"),
        (Step("k", 1, (Buffer(Space.ARENA, -1),), "s"), "outside"),
        (Step("k", 1, (Buffer(Space.PARAMETERS, 1),), "s"), "outside"),
        (Step("k", 1, (Buffer(Space.INPUT, 0, 1),), "s"), "outside"),
        (Step("k", 1, (Buffer(Space.OUTPUT, 0, 0),), "s"), "outside"),
    ],
)
def test_impossible_tables(step: Step, message: str) -> None:
    one = Tensor("x", Element.F32, (2,))
    with pytest.raises((ValueError, Unsupported), match=message):
        ProgramTable((step,), 64, 0, (one,), ())


def test_element_types_of_numpy() -> None:
    for element in Element:
        assert Element.of(element.dtype) is element
    with pytest.raises(ValueError, match="complex64"):
        Element.of(np.complex64)


def test_no_model_takes_a_name_of_the_runtime() -> None:
    """`rows.onnx` would make a second `nanoloom_rows`."""
    folder = Path(nanoloom.__file__).parent / "runtime"
    text = "".join(path.read_text() for path in sorted(folder.glob("*.[ch]")))
    names = set(re.findall(r"\bnanoloom_([a-z0-9]+)(?![a-z0-9_])", text))
    assert "rows" in names and {c_name(x) for x in names} == {
        f"{x}_model" for x in names
    }
