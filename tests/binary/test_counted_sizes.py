"""Outputs whose shapes depend on data and sizes, in libraries and executables."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.api.program import Program
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache

MODEL = """<ir_version: 9, opset_import: ["" : 18]>
above (float[length] x) => (float[n] kept, int64[1] number)
<float[1] least = {0.5}>
{
    good = Greater(x, least)
    kept = Compress(x, good)
    number = Shape(kept)
}
"""
C = """\
#include <stdio.h>
#include "model.h"

int main(void)
{
    static float x[64], kept[64];
    static int64_t number[1];
    const void *inputs[] = {x};
    void *outputs[] = {kept, number};
    struct nanoloom_model *model = nanoloom_model_create(2);
    if (nanoloom_model_output_of(model, 0) || nanoloom_model_output(2))
        return 1;
    int64_t size;
    while (scanf("%ld", &size) == 1) {
        for (int64_t i = 0; i < size; i++)
            if (scanf("%f", &x[i]) != 1)
                return 2;
        if (nanoloom_model_resize(model, &size) ||
            nanoloom_model_output_of(model, 0)->shape[0] != size)
            return 3;
        if (nanoloom_model_run(model, inputs, outputs))
            return 4;
        int64_t count = nanoloom_model_output_of(model, 0)->shape[0];
        printf("%d of %d:", (int)number[0], (int)count);
        for (int64_t i = 0; i < count; i++)
            printf(" %g", kept[i]);
        printf("\\n");
    }
    nanoloom_model_destroy(model);
    return 0;
}
"""
SIZES = (5, 1, 64, 17, 2)


@pytest.fixture(scope="module")
def program(linking: Cache) -> Program:
    return nanoloom.compile(onnx.parser.parse_model(MODEL), threads=1, cache=linking)


def arrays() -> list[np.ndarray]:
    """Of different lengths, with numbers of a few digits; none of the last is large."""
    random = np.random.default_rng(5)
    found = [random.integers(0, 99, n).astype(np.float32) / 64 for n in SIZES]
    return [*found, np.zeros(9, np.float32)]


@pytest.mark.parametrize("form", ["shared", "static"])
def test_from_c(
    program: Program, tmp_path: Path, form: Literal["shared", "static"]
) -> None:
    name = "model.so" if form == "shared" else "model.a"
    program.save(tmp_path / name, "model", form=form)
    (tmp_path / "main.c").write_text(C)
    command = [str(zig()), "cc", "-std=c11", "-Wall", "-Werror", "main.c", f"./{name}"]
    words = [*command, "-Wl,-rpath,$ORIGIN", "-lm", "-lpthread", "-o", "main"]
    subprocess.run(words, cwd=tmp_path, check=True)
    given = "\n".join(f"{len(x)} {' '.join(map(repr, x.tolist()))}" for x in arrays())
    done = subprocess.run(
        ["./main"], cwd=tmp_path, input=given.encode(), stdout=-1, check=True
    )
    lines = [
        f"{len(kept)} of {len(kept)}:" + "".join(f" {number:g}" for number in kept)
        for kept in (x[x > 0.5].tolist() for x in arrays())
    ]
    assert done.stdout.decode().splitlines() == lines
    text = (tmp_path / "model.h").read_text()
    assert " * axis 0 of output 0: as the data say, at most length\n" in text
    assert text.count("nanoloom_model_output_of(\n") == 1


def test_from_python(program: Program, tmp_path: Path) -> None:
    with nanoloom.load(program.save(tmp_path / "model.so"), threads=1) as model:
        assert [x.shape for x in model.outputs] == [("..length",), (1,)]
        for x in arrays():
            assert (model({"x": x})["kept"] == x[x > 0.5]).all()


def test_an_executable(program: Program, tmp_path: Path) -> None:
    path = program.save(tmp_path / "model", form="executable")
    for x in arrays():
        np.save(tmp_path / "x.npy", x)
        words = [str(path), "x.npy", "-o", "kept.npy", "--repeat=2"]
        subprocess.run(words, cwd=tmp_path, stdout=-1, check=True)
        kept = np.load(tmp_path / "kept.npy")
        assert kept.shape == x[x > 0.5].shape and (kept == x[x > 0.5]).all()
    told = subprocess.run([str(path), "--shape"], stdout=-1, check=True).stdout.decode()
    assert "axis 0 of output kept: as the data say, at most its size\n" in told
