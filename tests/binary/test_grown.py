"""Outputs of sizes without a bound, in libraries and executables."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.api.program import Program
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine
from nanoloom.target.by_name import levels
from nanoloom.target.host import host
from tests.c_libraries import lend
from tests.dynamic.test_rooms import DURATIONS, HEAD, READ, looped

# Reads sizes and inputs, each behind its number of bytes; writes a status, and shapes
# and outputs, or a sentence.
C = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"

static const int bytes_of[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};

static void give(const struct nanoloom_tensor *tensor, const void *array)
{
    int64_t count = 1, rank = tensor->rank;
    for (int32_t i = 0; i < tensor->rank; i++)
        count *= tensor->shape[i];
    fwrite(&rank, sizeof rank, 1, stdout);
    fwrite(tensor->shape, sizeof count, (size_t)rank, stdout);
    fwrite(array, (size_t)bytes_of[tensor->element], (size_t)count, stdout);
}

static int run(struct nanoloom_model *model, const void *const *inputs)
{
    void *outputs[NANOLOOM_MODEL_OUTPUTS];
    memset(outputs, 1, sizeof outputs);
    int64_t status = nanoloom_model_run_alloc(model, inputs, outputs);
    fwrite(&status, sizeof status, 1, stdout);
    for (int32_t i = 0; i < NANOLOOM_MODEL_OUTPUTS; i++) {
        const struct nanoloom_tensor *found = nanoloom_model_output_of(model, i);
        if (!outputs[i] != !!status || !found != !!status)
            return 0;
        if (!status)
            give(found, outputs[i]);
    }
    if (status) {
        char text[256] = {0};
        nanoloom_model_explain(model, (int)status, text, sizeof text);
        fwrite(text, sizeof text, 1, stdout);
    }
    nanoloom_model_free_outputs(outputs);
    nanoloom_model_free_outputs(outputs);
    return !outputs[0];
}

int main(void)
{
    struct nanoloom_model *model = nanoloom_model_create(2);
    void *arrays[NANOLOOM_MODEL_INPUTS] = {0};
    const void *inputs[NANOLOOM_MODEL_INPUTS];
    void *outputs[NANOLOOM_MODEL_OUTPUTS];
    if (nanoloom_model_output_of(model, 0) || nanoloom_model_output(9) ||
        nanoloom_model_input(NANOLOOM_MODEL_INPUTS) ||
        nanoloom_model_run_alloc(model, NULL, outputs) != NANOLOOM_NULL_POINTER ||
        nanoloom_model_run_alloc(NULL, inputs, outputs) != NANOLOOM_NO_HANDLE ||
        outputs[0])
        return 1;
    for (;;) {
#ifdef NANOLOOM_MODEL_SIZES
        int64_t sizes[NANOLOOM_MODEL_SIZES];
        if (fread(sizes, sizeof sizes, 1, stdin) != 1)
            break;
        if (nanoloom_model_resize(model, sizes))
            return 2;
#endif
        int64_t bytes;
        for (int32_t i = 0; i < NANOLOOM_MODEL_INPUTS; i++) {
            if (fread(&bytes, sizeof bytes, 1, stdin) != 1)
                goto end;
            arrays[i] = realloc(arrays[i], (size_t)bytes + 1);
            if (fread(arrays[i], 1, (size_t)bytes, stdin) != (size_t)bytes)
                return 3;
            inputs[i] = arrays[i];
        }
        if (!run(model, inputs))
            return 4;
    }
end:
    nanoloom_model_destroy(model);
    return 0;
}
"""
LEVELS = {
    "x86_64": levels("x86-64-v2,x86-64-v3"),
    "aarch64": levels("aarch64,cortex-a76"),
}[host().arch]
Feeds = dict[str, np.ndarray]
Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Case:
    """A model in text, its calls by a seed, and what is right."""

    text: str
    feeds: Callable[[np.random.Generator, int], Feeds]
    wanted: Callable[[Feeds], Arrays]
    sizes: str = ""  # an input whose last axis but one or last is the model's size
    axis: int = 0

    @property
    def model(self) -> onnx.ModelProto:
        return onnx.parser.parse_model(f"{HEAD}\n{self.text}")

    def calls(self, seed: int) -> list[Feeds]:
        """With sizes that shrink and grow, none and many among them."""
        random = np.random.default_rng(seed)
        most = [int(n) for n in random.integers(1, 50, 3)]
        return [self.feeds(random, n) for n in (most[0], 400, *most[1:], 0, 150)]

    def sizes_of(self, feeds: Feeds) -> list[int]:
        return [feeds[self.sizes].shape[self.axis]] if self.sizes else []


def trips(random: np.random.Generator, most: int) -> Feeds:
    rows = int(random.integers(1, 9))
    return {"x": random.integers(0, 9, (rows, 3)), "top": np.array(most)}


def every(feeds: Feeds) -> Arrays:
    """The last state, its square behind each trip, and the trips' numbers, squared."""
    x, top = feeds["x"], int(feeds["top"])
    numbers = np.arange(max(1, top - x.max()))
    states = x + 1 + numbers.reshape(-1, 1, 1)
    return [states[-1], states**2, numbers**2]


def places(random: np.random.Generator, most: int) -> Feeds:
    top = np.array(max(most, 1))
    return {"top": top, "place": random.integers(0, top, ())}


def read(feeds: Feeds) -> Arrays:
    numbers = np.arange(int(feeds["top"])) ** 2
    found = numbers.sum(), 2 * numbers, np.array([len(numbers)])
    return [*map(np.asarray, found), numbers[feeds["place"]]]


def words(random: np.random.Generator, most: int) -> Feeds:
    count = int(random.integers(1, 9))
    logs = random.normal(np.log(most / count + 0.1), 0.5, (1, count))
    x = random.integers(-9, 9, (1, 6, count)).astype(np.float32)
    return {"logs": logs.astype(np.float32), "x": x}


def spread(feeds: Feeds) -> Arrays:
    lengths = np.ceil(np.exp(feeds["logs"].astype(np.float64))).astype(int)[0]
    want = np.repeat(feeds["x"], lengths, axis=2)
    return [want, np.repeat(want, 2, axis=2)]


CASES = {
    "loop": Case(looped("rows", "", 1, True), trips, every, "x"),
    "read": Case(READ, places, read),
    "durations": Case(
        DURATIONS.replace("WORDS", "words"), words, spread, "logs", axis=1
    ),
}
Saved = Callable[[str], Program]


@pytest.fixture(scope="module")
def compiled(linking: Cache) -> Saved:
    made: dict[str, Program] = {}

    def of(name: str) -> Program:
        if name not in made:
            model = CASES[name].model
            made[name] = nanoloom.compile(model, threads=1, cache=linking)
        return made[name]

    return of


def require_right(name: str, feeds: Feeds, found: Sequence[np.ndarray]) -> None:
    for mine, right in zip(found, CASES[name].wanted(feeds), strict=True):
        assert mine.shape == right.shape and np.array_equal(mine, right)
        assert not right.size or not np.array_equal(mine, right + 1)


def sent(case: Case, calls: Sequence[Feeds]) -> bytes:
    parts: list[bytes] = []
    for feeds in calls:
        parts.append(np.array(case.sizes_of(feeds), np.int64).tobytes())
        for value in case.model.graph.input:
            array = feeds[value.name]
            parts += [np.int64(array.nbytes).tobytes(), array.tobytes()]
    return b"".join(parts)


def received(stream: io.BytesIO, dtypes: Sequence[np.dtype]) -> Arrays | str:
    """The outputs of one call, or the sentence in their place."""
    if np.frombuffer(stream.read(8), np.int64)[0]:
        return stream.read(256).rstrip(b"\0").decode()
    found: Arrays = []
    for dtype in dtypes:
        rank = int(np.frombuffer(stream.read(8), np.int64)[0])
        shape = np.frombuffer(stream.read(8 * rank), np.int64)
        data = stream.read(int(shape.prod()) * dtype.itemsize)
        found.append(np.frombuffer(data, dtype).reshape(shape))
    return found


def run_c(
    folder: Path, program: Program, form: Literal["shared", "static"], given: bytes
) -> io.BytesIO:
    name = "model.so" if form == "shared" else "model.a"
    program.save(folder / name, "model", form=form)
    (folder / "main.c").write_text(C)
    command = [str(zig()), "cc", "-std=c11", "-Wall", "-Werror", "main.c", f"./{name}"]
    command += ["-Wl,-rpath,$ORIGIN", "-lm", "-lpthread", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["./main"], cwd=folder, input=given, stdout=-1, check=True)
    return io.BytesIO(done.stdout)


@pytest.mark.drawn
@pytest.mark.parametrize("form", ["shared", "static"])
@pytest.mark.parametrize("name", CASES)
def test_from_c(
    compiled: Saved, tmp_path: Path, name: str, form: Literal["shared", "static"]
) -> None:
    program, calls = compiled(name), CASES[name].calls(len(name))
    stream = run_c(tmp_path, program, form, sent(CASES[name], calls))
    for feeds in calls:
        found = received(stream, [x.dtype for x in program.outputs])
        assert not isinstance(found, str)
        require_right(name, feeds, found)
    assert not stream.read()


@pytest.mark.parametrize("name", CASES)
def test_from_python(compiled: Saved, tmp_path: Path, name: str) -> None:
    path = compiled(name).save(tmp_path / "model.so")
    with nanoloom.load(path, threads=1) as model:
        assert [x.name for x in model.inputs] == [*CASES[name].calls(0)[0]]
        for seed in range(3):
            for feeds in CASES[name].calls(seed):
                found = model(feeds)
                assert list(found) == [x.name for x in compiled(name).outputs]
                require_right(name, feeds, [*found.values()])


def run_executable(
    folder: Path, path: Path, program: Program, feeds: Feeds, *emulator: str
) -> Arrays:
    for name, array in feeds.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "made").mkdir(exist_ok=True)
    given = [f"{x.name}.npy" for x in program.inputs]
    command = [*emulator, str(path), *given, "-o", "made", "--repeat=2"]
    subprocess.run(command, cwd=folder, stdout=-1, check=True)
    return [np.load(folder / "made" / f"{x.name}.npy") for x in program.outputs]


@pytest.mark.parametrize("name", CASES)
def test_an_executable(compiled: Saved, tmp_path: Path, name: str) -> None:
    program = compiled(name)
    path = program.save(tmp_path / "model", form="executable")
    for feeds in CASES[name].calls(1):
        require_right(name, feeds, run_executable(tmp_path, path, program, feeds))


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("spec", ["cortex-a72", "sifive-x280"])
def test_on_another_machine(tmp_path: Path, linking: Cache, spec: str) -> None:
    other = machine(spec)
    options = CompileOptions(other.target)
    lend(other.target.triple.partition("-")[0], linking)
    for name in ("loop", "durations"):
        model = CASES[name].model
        program = nanoloom.compile(model, options=options, cache=linking)
        path = program.save(tmp_path / name, form="executable")
        for feeds in CASES[name].calls(2)[:3]:
            found = run_executable(tmp_path, path, program, feeds, *other.call())
            require_right(name, feeds, found)


def test_code_for_several_cpus(compiled: Saved, tmp_path: Path) -> None:
    path = compiled("loop").save(tmp_path / "model.so", levels=LEVELS)
    with nanoloom.load(path, threads=1) as model:
        for feeds in CASES["loop"].calls(3):
            require_right("loop", feeds, [*model(feeds).values()])


def test_what_is_refused_from_c(compiled: Saved, tmp_path: Path) -> None:
    """In a sentence, and the handle runs on: an index, which counts where it fits."""
    calls = [
        {"top": np.array(top), "place": np.array(place)}
        for top, place in ((300, 299), (400, 400), (500, 499), (3, -4))
    ]
    program = compiled("read")
    stream = run_c(tmp_path, program, "shared", sent(CASES["read"], calls))
    dtypes = [x.dtype for x in program.outputs]
    found = [received(stream, dtypes) for _ in calls]
    assert [isinstance(x, str) for x in found] == [False, True, False, True]
    assert re.search(r"\(Gather\): index \d+ is outside -512..511", str(found[1]))
    require_right("read", calls[2], [x for x in found[2] if not isinstance(x, str)])


def test_what_files_say(compiled: Saved, tmp_path: Path) -> None:
    compiled("loop").save(tmp_path / "model.so")
    text = (tmp_path / "model.h").read_text()
    assert " * axis 0 of output 1: as the data say\n" in text
    assert "\n * nanoloom_room_0: as the data say, at node " in text
    assert "NANOLOOM_MODEL_SIZES = 1\n" in text
    assert text.count("nanoloom_model_output_of(\n") == 1
    assert "nanoloom_model_run(" not in text
    with nanoloom.load(tmp_path / "model.so") as model:
        assert model.manifest["dimensions"] == {"rows": "1.."}
        assert len(model.manifest["inputs"]) == 2
        assert len(model.manifest["outputs"]) == 3
    path = compiled("loop").save(tmp_path / "model", form="executable")
    told = subprocess.run([str(path), "--shape"], stdout=-1, check=True).stdout.decode()
    assert "axis 0 of output every: as the data say\n" in told
    assert "dimension rows: " in told and "dimension nanoloom_room" not in told
