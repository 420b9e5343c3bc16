"""Outputs whose shapes depend on data, in libraries and executables."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.api.program import Program
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.errors import Unsupported

# Of rows above a threshold: where they are (the places of an axis behind another one),
# their boxes without those that overlap, and a number of a shape that is known.
MODEL = """<ir_version: 9, opset_import: ["" : 18]>
found (float[6, 4] boxes, float[1, 2, 6] scores)
    => (int64[3, n] places, int64[m, 3] kept, int64[1] number)
<int64[1] a0 = {0}, int64[1] a1 = {1}, int64[1] most = {4}, float[1] overlap = {0.3},
 float least = {0.5}>
{
    above = Greater(scores, least)
    places = NonZero(above)
    three = Unsqueeze(boxes, a0)
    limit = Reshape(least, a1)
    kept = NonMaxSuppression(three, scores, most, overlap, limit)
    whole = Shape(kept)
    number = Gather<axis = 0>(whole, a0)
}
"""
C = """\
#include <stdio.h>
#include "model.h"

static void show(struct nanoloom_model *model, int32_t index, const int64_t *array)
{
    const struct nanoloom_tensor *tensor = nanoloom_model_output_of(model, index);
    int64_t count = 1;
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        count *= tensor->shape[axis];
    printf("%d %d", (int)tensor->shape[0],
           tensor->rank > 1 ? (int)tensor->shape[1] : 1);
    for (int64_t i = 0; i < count; i++)
        printf(" %d", (int)array[i]);
    printf("\\n");
}

int main(void)
{
    static float boxes[24], scores[12];
    static int64_t places[36], kept[24], number[1];
    const void *inputs[] = {boxes, scores};
    void *outputs[] = {places, kept, number};
    struct nanoloom_model *model = nanoloom_model_create(2);
    if (nanoloom_model_output_of(model, 0) || nanoloom_model_output(3))
        return 1;
    while (fread(boxes, sizeof boxes, 1, stdin) == 1 &&
           fread(scores, sizeof scores, 1, stdin) == 1) {
        if (nanoloom_model_run(model, inputs, outputs) ||
            nanoloom_model_output_of(model, 3))
            return 2;
        show(model, 0, places);
        show(model, 1, kept);
        show(model, 2, number);
    }
    outputs[1] = NULL;
    if (nanoloom_model_run(model, inputs, outputs) != NANOLOOM_NULL_POINTER)
        return 3;
    nanoloom_model_destroy(model);
    return 0;
}
"""
Feeds = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def program(linking: Cache) -> Program:
    return nanoloom.compile(onnx.parser.parse_model(MODEL), threads=1, cache=linking)


def feeds() -> list[Feeds]:
    """With different numbers of scores above the threshold, none and all among them."""
    random = np.random.default_rng(3)
    return [
        {
            "boxes": np.sort(random.random((6, 4)), -1).astype(np.float32),
            "scores": (random.random((1, 2, 6)) + more).astype(np.float32),
        }
        for more in (0, -0.25, -1, 0.5, 0)
    ]


def wanted(given: Feeds) -> list[np.ndarray]:
    reference = ReferenceEvaluator(onnx.parser.parse_model(MODEL))
    return [np.asarray(x) for x in reference.run(None, given)]


def printed(arrays: list[np.ndarray]) -> str:
    """As the C program prints them."""
    lines = [[*(x.shape if x.ndim > 1 else (len(x), 1)), *x.flat] for x in arrays]
    return "".join(f"{' '.join(map(str, line))}\n" for line in lines)


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
    given = b"".join(x.tobytes() for each in feeds() for x in each.values())
    done = subprocess.run(["./main"], cwd=tmp_path, input=given, stdout=-1, check=True)
    right = [wanted(each) for each in feeds()]
    assert done.stdout.decode() == "".join(map(printed, right))
    assert len({x[0].shape for x in right}) > 2 and len({x[1].shape for x in right}) > 2
    text = (tmp_path / "model.h").read_text()
    assert " * output 0: places, i64[3, 12], 288 bytes\n" in text
    assert " * axis 1 of output 0: as the data say, at most 12\n" in text
    assert " * axis 0 of output 1: as the data say, at most 8\n" in text


def test_from_python(program: Program, tmp_path: Path) -> None:
    path = program.save(tmp_path / "model.so")
    with nanoloom.load(path, threads=1) as model:
        assert [x.shape for x in model.outputs] == [(3, "..12"), ("..8", 3), (1,)]
        for given in feeds():
            found = model(given)
            assert list(found) == ["places", "kept", "number"]
            for mine, right in zip(found.values(), wanted(given), strict=True):
                assert mine.shape == right.shape and (mine == right).all()


def test_an_executable(program: Program, tmp_path: Path) -> None:
    path = program.save(tmp_path / "model", form="executable")
    for given in feeds():
        for name, array in given.items():
            np.save(tmp_path / f"{name}.npy", array)
        words = [str(path), "boxes.npy", "scores.npy", "-o", "places.npy", "--repeat=2"]
        done = subprocess.run(
            [*words, "-o", "kept.npy"], cwd=tmp_path, stdout=-1, check=True
        )
        right = wanted(given)
        for name, array in zip(("places", "kept"), right, strict=False):
            made = np.load(tmp_path / f"{name}.npy")
            assert made.shape == array.shape and (made == array).all()
        assert f"number: i64[1] {right[2][0]}\n" in done.stdout.decode()
    told = subprocess.run([str(path), "--shape"], stdout=-1, check=True).stdout.decode()
    assert told.splitlines()[2:] == [
        "output places: i64[3, 12]",
        "output kept: i64[8, 3]",
        "output number: i64[1]",
        "axis 1 of output places: as the data say, at most 12",
        "axis 0 of output kept: as the data say, at most 8",
    ]


def test_a_bare_object_cannot_say(program: Program, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"output places .*a bare object cannot say"):
        program.save(tmp_path / "model.o", form="bare")
    assert not (tmp_path / "model.o").exists()
