"""One file with code for several CPUs: which is taken, also by NANOLOOM_ISA."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

from nanoloom.api.loaded import load
from nanoloom.api.program import Program
from nanoloom.binary.output_forms import Form
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.errors import Error
from nanoloom.options import CompileOptions
from nanoloom.schedule.register_tile import of_common_width, ranked
from nanoloom.target import by_name
from nanoloom.target.by_name import levels
from nanoloom.target.host import host
from tests.c_libraries import lend

NAMES = "x86-64-v2,x86-64-v3,x86-64-v4"
LEVELS = levels(NAMES)
HERE = [
    level.name
    for level in LEVELS
    if host().arch == level.arch and level.extensions <= host().extensions
]
EPSILON = float(np.finfo(np.float32).eps)
# qemu's name of a CPU, and the level that it has.
CPUS = {"Nehalem": "x86-64-v2", "Haswell": "x86-64-v3", "max": "x86-64-v3"}
RNG = np.random.default_rng(4)
X, A, B = (
    RNG.standard_normal(shape).astype(np.float32)
    for shape in ((37, 129), (129, 517), (517, 19))
)


def model() -> ModelProto:
    """Two products, of sizes that divide nothing; any number of rows."""
    made = parser.parse_model("""
    <ir_version: 10, opset_import: ["": 21]>
    mlp (float[rows, 129] x, float[129, 517] a, float[517, 19] b) => (float[rows, 19] y)
    {
        h = MatMul(x, a)
        r = Relu(h)
        y = MatMul(r, b)
    }
    """)
    for name, array in (("a", A), ("b", B)):
        made.graph.initializer.append(numpy_helper.from_array(array, name))
        made.graph.input.pop()
    return made


def agrees(got: np.ndarray) -> bool:
    """Within the bound of two sums, in float64."""
    x, a, b = (array.astype(np.float64) for array in (X, A, B))
    hidden = np.maximum(x @ a, 0)
    off = (129 + 2) * EPSILON * (abs(x) @ abs(a))
    bound = (517 + 2) * EPSILON * ((hidden + off) @ abs(b)) + off @ abs(b)
    return bool((abs(got - hidden @ b) <= bound).all())


@dataclass(frozen=True)
class Made:
    folder: Path
    executable: Path
    program: Program
    cache: Cache

    def run(
        self, *emulator: str, isa: str = "", words: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """With an array to compute with, unless there are other words."""
        given = words or (str(self.folder / "x.npy"), "-o", str(self.folder / "y.npy"))
        return subprocess.run(
            [*emulator, self.executable, *given],
            env=os.environ | {"NANOLOOM_ISA": isa},
            capture_output=True,
            text=True,
        )

    def result(self) -> np.ndarray:
        """What the last run has written, and no other run after it."""
        found = np.load(self.folder / "y.npy")
        (self.folder / "y.npy").unlink()
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("levels")
    cache = Cache(folder / "cache")
    lend("x86_64", cache)
    options = CompileOptions(by_name("x86-64-v4"))
    program = compile(model(), dims={"rows": 37}, options=options, cache=cache)
    path = program.save(folder / "mlp", form="executable", levels=LEVELS)
    np.save(folder / "x.npy", X)
    return Made(folder, path, program, cache)


@pytest.mark.parametrize("isa", HERE)
def test_each_level_that_this_machine_has(made: Made, isa: str) -> None:
    done = made.run(isa=isa)
    assert (done.returncode, done.stderr) == (0, "")
    got = made.result()
    assert agrees(got) and not agrees(0 * got)
    assert f"target: {isa}, one of {NAMES.replace(',', ', ')}\n" in (
        made.run(isa=isa, words=("--info",)).stdout
    )


@pytest.mark.parametrize("cpu", CPUS)
def test_the_best_level_of_a_cpu_is_taken(made: Made, cpu: str) -> None:
    emulator = ("qemu-x86_64", "-cpu", cpu)
    assert made.run(*emulator).returncode == 0
    assert agrees(made.result())
    said = made.run(*emulator, words=("--info",)).stdout
    assert f"target: {CPUS[cpu]}, one of " in said


def test_a_lower_level_can_be_forced_and_a_higher_one_is_refused(made: Made) -> None:
    haswell = ("qemu-x86_64", "-cpu", "Haswell")
    assert made.run(*haswell, isa="x86-64-v2").returncode == 0
    assert agrees(made.result())
    done = made.run(*haswell, isa="x86-64-v4")
    assert done.returncode == 1 and not (made.folder / "y.npy").exists()
    last = done.stderr.splitlines()[-1]
    assert re.fullmatch(
        r"mlp: NANOLOOM_ISA is x86-64-v4: this CPU has no avx512\w+; "
        r"the program is compiled for x86-64-v4",
        last,
    )


def test_a_level_that_is_none_is_refused(made: Made) -> None:
    done = made.run("qemu-x86_64", isa="avx9")
    assert done.returncode == 1
    told = "NANOLOOM_ISA is avx9: the program is compiled for x86-64-v2, x86-64-v3, "
    assert told in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("isa", ["X86-64-V2", "x86-64-v2+avx2", "x86-64"])
def test_names_are_compared_word_by_word(made: Made, isa: str) -> None:
    """Of capitals or not; a feature more, or a part of a word, is another name."""
    done = made.run("qemu-x86_64", "-cpu", "Haswell", isa=isa)
    named = isa.lower() == "x86-64-v2"
    assert (done.returncode == 0) == named
    assert named or f"NANOLOOM_ISA is {isa}: the program is compiled for" in done.stderr


def test_another_name_of_a_target_is_its_name(made: Made) -> None:
    """riscv64+v is what the table of targets calls rv64gcv."""
    target = by_name("riscv64+v")
    lend(target.arch, made.cache)
    program = compile(
        model(), dims={"rows": 37}, options=CompileOptions(target), cache=made.cache
    )
    path = program.save(made.folder / "vectors", form="executable")
    vectors = Made(made.folder, path, program, made.cache)
    emulator = ("qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0")
    for isa in ("rv64gcv", "riscv64+v"):
        assert vectors.run(*emulator, isa=isa).stderr == ""
        assert agrees(vectors.result())
    done = vectors.run(*emulator, isa="riscv64")
    told = "vectors: NANOLOOM_ISA is riscv64: the program is compiled for rv64gcv"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, told)


def test_a_file_of_one_level_is_for_no_other(made: Made) -> None:
    program = compile(
        model(),
        dims={"rows": 37},
        options=CompileOptions(by_name("x86-64-v3")),
        cache=made.cache,
    )
    path = program.save(made.folder / "alone", form="executable")
    alone = Made(made.folder, path, program, made.cache)
    haswell = ("qemu-x86_64", "-cpu", "Haswell")
    assert alone.run(*haswell, isa="x86-64-v3").returncode == 0
    assert agrees(alone.result())
    done = alone.run(*haswell, isa="x86-64-v2")
    told = "alone: NANOLOOM_ISA is x86-64-v2: the program is compiled for x86-64-v3"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, told)


MAIN = """
#include <stdio.h>
#include "one.h"
int main(void) {
    struct nanoloom_one *model = nanoloom_one_create(1);
    puts(model ? "created" : "none");
    nanoloom_one_destroy(model);
}
"""


@pytest.mark.parametrize("form", ["static", "shared"])
def test_a_library_of_one_level_refuses_lesser_cpus(made: Made, form: Form) -> None:
    """Its code would end the process by an illegal instruction."""
    text = '<ir_version: 8, opset_import: ["": 17]> m (float[5] x) => (float[5] y)'
    options = CompileOptions(by_name("x86-64-v3"))
    tiny = parser.parse_model(text + "{ y = Exp(x) }")
    program = compile(tiny, options=options, cache=made.cache)
    folder = made.folder / form
    folder.mkdir()
    name = "one.a" if form == "static" else "libone.so"
    path = program.save(folder / name, "one")
    assert "stderr says why" in path.with_suffix(".h").read_text("utf-8")
    path.with_suffix(".h").rename(folder / "one.h")
    (folder / "main.c").write_text(MAIN)
    command = [str(zig()), "cc", "-O1", "-mcpu=x86_64", "main.c", path.name]
    subprocess.run([*command, "-Wl,-rpath,.", "-o", "main"], cwd=folder, check=True)
    for cpu, said in (("Haswell", "created\n"), ("Nehalem", "none\n")):
        emulator = ["qemu-x86_64", "-cpu", cpu, "main"]
        ran = subprocess.run(emulator, cwd=folder, capture_output=True, text=True)
        assert (ran.returncode, ran.stdout) == (0, said)
        told = "this CPU has no avx; the program is compiled for x86-64-v3\n"
        assert ran.stderr.endswith(told) == (cpu == "Nehalem")


def test_a_cpu_below_all_levels_is_refused(made: Made) -> None:
    emulator = ("qemu-x86_64", "-cpu", "qemu64")
    done = made.run(*emulator)
    told = "mlp: this CPU has no sse4.2; the program is compiled for x86-64-v2"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, told)
    said = made.run(*emulator, words=("--info",))
    assert said.returncode == 0 and "not on this machine: this CPU has" in said.stdout


def test_there_is_one_copy_of_the_weights(made: Made) -> None:
    said = made.run("qemu-x86_64", words=("--info",)).stdout
    found = re.search(r"weights: (\d+) bytes", said)
    assert found and int(found[1]) < 1.2 * (A.nbytes + B.nbytes)


def test_a_layer_that_is_averaged_has_one_copy(made: Made) -> None:
    """Its kernel adds up the pixels, and has tiles of its own."""
    filters = RNG.standard_normal((120, 130, 1, 1)).astype(np.float32)
    averaged = parser.parse_model("""
    <ir_version: 10, opset_import: ["": 21]>
    head (float[1, 130, 7, 7] x, float[120, 130, 1, 1] w) => (float[1, 120, 1, 1] y)
    {
        c = Conv(x, w)
        r = Relu(c)
        y = GlobalAveragePool(r)
    }
    """)
    averaged.graph.initializer.append(numpy_helper.from_array(filters, "w"))
    averaged.graph.input.pop()
    options = CompileOptions(by_name("x86-64-v4"))
    program = compile(averaged, options=options, cache=made.cache)
    path = program.save(made.folder / "head", form="executable", levels=LEVELS)
    head = Made(made.folder, path, program, made.cache)
    found = re.search(r"weights: (\d+) bytes", head.run(words=("--info",)).stdout)
    assert found and int(found[1]) < 1.2 * filters.nbytes


@pytest.mark.parametrize("columns", [3, 19, 64, 100, 517, 768])
@pytest.mark.parametrize("rows", [1, 3, 128])
def test_panels_of_all_levels_are_as_wide(rows: int, columns: int) -> None:
    widths: set[int] = set()
    for level in LEVELS:
        unit, shared = level.vector, level.shared
        assert shared
        tiles = ranked(rows, columns, 32, unit)
        fitting = of_common_width(tiles, rows, columns, 32, unit, shared)
        widths |= {tile.vectors * unit.bits for tile in fitting}
    assert len(widths) == 1


def test_a_library_takes_a_level(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code is for the machine that the tests are for: x86-64."""
    path = made.program.save(made.folder / "mlp.so", levels=LEVELS)
    assert "stderr says why" in path.with_suffix(".h").read_text("utf-8")
    for isa in HERE:
        monkeypatch.setenv("NANOLOOM_ISA", isa)
        assert agrees(load(path, 1)({"x": X})["y"])
    monkeypatch.setenv("NANOLOOM_ISA", "avx9")
    with pytest.raises(Error, match="NANOLOOM_ISA is avx9: the program is compiled"):
        load(path, 1)


def test_sizes_at_run_time_and_an_archive(made: Made) -> None:
    options = CompileOptions(by_name("x86-64-v3"))
    program = compile(model(), options=options, cache=made.cache)
    two = levels("x86-64-v3,x86-64-v2")
    assert [level.name for level in two] == ["x86-64-v2", "x86-64-v3"]
    path = program.save(made.folder / "open", form="executable", levels=two)
    open_ = Made(made.folder, path, program, made.cache)
    for cpu in ("Nehalem", "Haswell"):
        assert open_.run("qemu-x86_64", "-cpu", cpu).returncode == 0
        assert agrees(open_.result())
    program.save(made.folder / "mlp.a", form="static", levels=two)
    with pytest.raises(Error, match="a bare object is for one target; name a single"):
        program.save(made.folder / "mlp.o", form="bare", levels=two)


def test_levels_are_of_one_kind() -> None:
    with pytest.raises(Error, match="x86-64-v2,aarch64: a file has code for CPUs of"):
        levels("x86-64-v2,aarch64")
    assert [x.name for x in levels("x86-64")][:3] == [x.name for x in LEVELS]
    assert levels("riscv64")[0] == by_name("riscv64")
