"""Libraries and executables whose sizes are known at run time: made by hand."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nanoloom.api.loaded import Loaded
from nanoloom.binary.assemble import Compiled
from nanoloom.binary.executable import Identity, write_executable
from nanoloom.binary.header import header_h
from nanoloom.binary.shared import write_shared_library
from nanoloom.binary.static import write_static_library
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.errors import InputError
from nanoloom.interface.bounds import Bounds
from tests.binary.test_executable import HERE, refused, run
from tests.runtime.native import TRIPLE, Block
from tests.runtime.sized import kernels, table

OK, NULL_POINTER, NO_SIZES, WRONG_SIZES = 0, 2, 6, 7
WITHIN, OR_NONE = (Bounds(2, 7),), (Bounds(1, 7, or_none=True),)
C = """
#include <stdio.h>
#include "model.h"

int main(void)
{
    float a[15], b[15], out[15];
    for (int i = 0; i < 15; i++)
        a[i] = (float)i, b[i] = 1;
    struct nanoloom_model *model = nanoloom_model_create(2);
    int64_t sizes[NANOLOOM_MODEL_SIZES];
    for (int64_t n = 5; n <= 9; n += 4) {
        sizes[NANOLOOM_MODEL_SIZE_N] = n;
        const void *inputs[] = {a, b};
        void *outputs[] = {out};
        int status = nanoloom_model_resize(model, sizes);
        if (!status)
            status = nanoloom_model_run(model, inputs, outputs);
        const struct nanoloom_tensor *made = nanoloom_model_output_of(model, 0);
        printf("%d %d %g\\n", status, (int)made->shape[0], out[14]);
    }
    nanoloom_model_destroy(model);
    return 0;
}
"""


class Model:
    """The public functions of a library, as a C program sees them."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        for name in ("create", "input_of", "output_of"):
            self.function(name).restype = ctypes.c_void_p
        self.function("error").restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p(self.function("create")(2))

    def function(self, name: str) -> Callable[..., int]:
        return getattr(self.library, f"nanoloom_model_{name}")

    def resize(self, n: int) -> int:
        return self.function("resize")(self.handle, (ctypes.c_int64 * 1)(n))

    def explained(self, status: int) -> bytes:
        text = ctypes.create_string_buffer(256)
        length = self.function("explain")(self.handle, status, text, len(text))
        assert length == len(text.value)
        return text.value

    def run(self, n: int) -> int:
        """Whether the result is right is asserted where there is one."""
        a, b = np.random.default_rng(n).standard_normal((2, 3 * n)).astype(np.float32)
        out = np.zeros_like(a)
        inputs = (ctypes.c_void_p * 2)(a.ctypes.data, b.ctypes.data)
        outputs = (ctypes.c_void_p * 1)(out.ctypes.data)
        status = self.function("run")(self.handle, inputs, outputs)
        if status == OK:
            assert (out == (a + a) + b).all()
        return status

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.function("destroy")(self.handle)


def write(folder: Path, cache: Cache, bounds: tuple[Bounds, ...] = ()) -> Path:
    output = folder / "model.so"
    made = (kernels(), table(bounds), None, output, "model")
    write_shared_library(*made, triple=TRIPLE, cache=cache)
    return output


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> Path:
    return write(tmp_path_factory.mktemp("library"), cache)


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> Path:
    return write(tmp_path_factory.mktemp("bounded"), cache, WITHIN)


def test_sizes_from_c(library: Path) -> None:
    """Larger, smaller, the same; what is refused leaves the last ones."""
    with Model(library) as model:
        assert model.run(3) == NO_SIZES
        assert model.function("output_of")(model.handle, 0) is None
        for n in (3, 9, 1, 1, 8):
            assert model.resize(n) == OK
            assert model.run(n) == OK
        for wrong in (10, 0, -1, 2**62):
            assert model.resize(wrong) == WRONG_SIZES
            assert model.run(8) == OK
        assert model.function("resize")(model.handle, None) == NULL_POINTER
        assert b"does not take these sizes" in ctypes.string_at(
            ctypes.cast(model.function("error")(WRONG_SIZES), ctypes.c_char_p)
        )


def test_bounds_from_c(bounded: Path) -> None:
    with Model(bounded) as model:
        said = {1: b"n is 1, and at least 2 is wanted", 2: b"", 7: b""}
        for n, text in (said | {8: b"n is 8, and at most 7 is wanted"}).items():
            assert model.resize(n) == (WRONG_SIZES if text else OK)
            assert not text or model.explained(WRONG_SIZES) == text
        assert model.run(7) == OK


def test_no_elements_from_c(tmp_path: Path, cache: Cache) -> None:
    """Nothing is computed: the table's kernels are for one row at least."""
    with Model(write(tmp_path, cache, OR_NONE)) as model:
        for n in (3, 0, 0, 7, 0):
            assert model.resize(n) == OK
            assert model.run(n) == OK
        assert [model.resize(n) for n in (-1, 8)] == [WRONG_SIZES, WRONG_SIZES]
    assert "NANOLOOM_MODEL_SIZE_N = 0, /* 0..7 */" in header_h(table(OR_NONE), "model")


def test_sizes_from_python(library: Path, bounded: Path) -> None:
    with Loaded(library, threads=2) as model, Loaded(bounded, threads=1) as within:
        assert model.inputs[0].shape == ("n", 3)
        assert model.outputs[0].shape == ("3 * n",)
        for n in (4, 2, 4, 7):
            a, b = np.random.default_rng(n).standard_normal((2, n, 3)).astype("f4")
            for program in (model, within):
                out = program({"a": a, "b": b})["out"]
                assert (out == ((a + a) + b).ravel()).all()
        ten, one = np.ones((10, 3), np.float32), np.ones((1, 3), np.float32)
        with pytest.raises(InputError, match=r"n is 10, at most 7 was compiled for"):
            within({"a": ten, "b": ten})
        with pytest.raises(InputError, match=r"n is 1, at least 2 is wanted"):
            within({"a": one, "b": one})
        with pytest.raises(InputError, match=r"dimension n is 1 here and 10 in"):
            model({"a": ten, "b": one})


def test_a_static_library_in_c(tmp_path: Path, cache: Cache) -> None:
    made = Compiled(kernels(), table(WITHIN), Block(b""))  # type: ignore[arg-type]
    output = tmp_path / "model.a"
    write_static_library(made, output, "model", triple=TRIPLE, cache=cache)
    (tmp_path / "main.c").write_text(C)
    command = [str(zig()), "cc", "-std=c11", "-Wall", "-Werror", "main.c", "model.a"]
    subprocess.run(
        [*command, "-lm", "-lpthread", "-o", "main"], cwd=tmp_path, check=True
    )
    done = subprocess.run([tmp_path / "main"], capture_output=True, check=True)
    assert done.stdout == b"0 15 29\n7 15 29\n"


def test_the_header_says_what_it_takes() -> None:
    text = header_h(table(WITHIN), "model")
    assert " * input 0: a, f32[n, 3]\n" in text
    assert " * output 0: out, f32[3 * n]\n" in text
    assert "NANOLOOM_MODEL_SIZE_N = 0, /* 2..7 */" in text
    assert "int64_t sizes[] = {n};" in text


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory, linking: Cache) -> Path:
    output = tmp_path_factory.mktemp("executable") / "model"
    made = Compiled(kernels(), table(WITHIN), Block(b""))  # type: ignore[arg-type]
    write_executable(made, output, Identity("m", "1", HERE, "f32"), cache=linking)
    return output


def saved(folder: Path, n: int, name: str, columns: int = 3) -> Path:
    path = folder / f"{name}{n}.npy"
    np.save(path, np.random.default_rng(n).standard_normal((n, columns)).astype("f4"))
    return path


@pytest.mark.parametrize("n", [2, 5, 7])
def test_an_executable_takes_the_sizes_of_its_files(
    executable: Path, tmp_path: Path, n: int
) -> None:
    a, b = saved(tmp_path, n, "a"), saved(tmp_path, n, "b")
    done = run(executable, a, b, "-o", tmp_path / "out.npy", "--threads", 2)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = np.load(a), np.load(b)
    assert (np.load(tmp_path / "out.npy") == ((first + first) + second).ravel()).all()


def test_an_executable_refuses_other_files(executable: Path, tmp_path: Path) -> None:
    def file(n: int, columns: int = 3) -> Path:
        return saved(tmp_path, n, f"of{columns}_", columns)

    more, less = (f"dimension n is {x}" for x in ("8, at most 7", "1, at least 2"))
    refused(run(executable, file(8), file(8)), f"{more} was compiled for")
    refused(run(executable, file(1), file(1)), f"{less} is wanted")
    here = "dimension n is 3 here and 4 in the inputs before"
    refused(run(executable, file(4), file(3)), f"{file(3)}: {here}")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)  # so that nobody waits for one
    refused(
        run(executable, pipe, file(4)),
        f"{pipe}: is a pipe, and sizes are read first: name a file",
    )
    os.close(writer)
    wide = file(4, 2)
    refused(
        run(executable, wide, wide), f"{wide}: holds f32[4, 2], input a is f32[4, 3]"
    )
    flat = tmp_path / "flat.npy"
    np.save(flat, np.ones(12, np.float32))
    refused(run(executable, flat, flat), f"{flat}: holds f32[12], input a is f32[n, 3]")


def test_an_executable_says_its_sizes(executable: Path) -> None:
    assert run(executable, "--shape").stdout.splitlines() == [
        "input a: f32[n, 3]",
        "input b: f32[n, 3]",
        "output out: f32[3 * n]",
        "dimension n: at least 2, at most 7",
    ]
    assert "workspace: as the dimensions ask for" in run(executable, "--info").stdout
