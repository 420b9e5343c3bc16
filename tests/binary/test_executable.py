"""Static executables of this machine: what they compute, print and refuse."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nanoloom import __version__
from nanoloom.binary.assemble import Compiled
from nanoloom.binary.executable import STACK_BYTES, Identity, needed, write_executable
from nanoloom.binary.table import ProgramTable
from nanoloom.cache import Cache
from nanoloom.target import TARGETS, Target, by_name
from tests.runtime.native import TRIPLE, Block, expected, kernels, table

TASKS = 345
COUNT = 3 * TASKS
WEIGHTS = np.random.default_rng(5).standard_normal(COUNT).astype(np.float32)
BASELINE = {"x86_64": "x86-64-v2", "aarch64": "aarch64"}
HERE = by_name(BASELINE[TRIPLE.split("-")[0]])
RUNTIME = Path(__file__).parents[2] / "nanoloom" / "runtime"


def write(
    folder: Path,
    cache: Cache,
    target: Target = HERE,
    made: ProgramTable | None = None,
) -> Path:
    output = folder / "model"
    found = made or table(TASKS)
    weights = Block(WEIGHTS.tobytes() if found.parameter_bytes else b"")
    identity = Identity('tiny "one"', "1a2b", target, "f32")
    compiled = Compiled(kernels(), found, weights)  # type: ignore[arg-type]
    write_executable(compiled, output, identity, cache=cache)
    return output


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, linking: Cache) -> Path:
    return write(tmp_path_factory.mktemp("executable"), linking)


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, Path]:
    a, b = np.random.default_rng(6).standard_normal((2, COUNT)).astype(np.float32)
    paths = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(paths[0], a)
    np.save(paths[1], b)
    return paths


def run(model: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [str(model), *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, env={}, check=False, timeout=60
    )


def refused(done: subprocess.CompletedProcess[str], sentence: str) -> None:
    """Status 1, nothing printed, and one line on stderr."""
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"model: {sentence}\n"


def test_it_is_static_and_not_left_half_written(model: Path) -> None:
    code = model.read_bytes()
    assert code[:4] == b"\x7fELF" and model.stat().st_mode & 0o100
    assert b"ld-linux" not in code and b"libc.so" not in code
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_the_same_program_is_the_same_file(
    model: Path, tmp_path: Path, linking: Cache
) -> None:
    assert write(tmp_path, linking).read_bytes() == model.read_bytes()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_runs(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path, threads: int
) -> None:
    out, total = tmp_path / "out.npy", tmp_path / "total.npy"
    words = ("-o", out, f"--out={total}", "--threads", threads)
    done = run(model, *inputs, *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    want = expected(np.load(inputs[0]), np.load(inputs[1]), WEIGHTS)
    for path, array in zip((out, total), want, strict=True):
        assert np.load(path).dtype == np.float32
        np.testing.assert_array_equal(np.load(path), array)
        assert array.any()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.npy",
        "b.npy",
        "out.npy",
        "total.npy",
    ]


def test_outputs_go_into_a_folder(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    assert run(model, *inputs, "-o", folder).returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == ["out.npy", "total.npy"]


def test_what_is_not_written_is_shown(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    done = run(model, *inputs, "-o", tmp_path / "out.npy")
    want = expected(np.load(inputs[0]), np.load(inputs[1]), WEIGHTS)[1]
    label, *numbers, more = done.stdout.split(" ")
    assert (label, numbers.pop(0), more) == ("total:", f"f32[{COUNT}]", "...\n")
    assert numbers == [f"{value:.7g}" for value in want[:8].tolist()]


def test_it_says_what_it_is(model: Path) -> None:
    done = run(model, "--info")
    facts = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert (facts["model"], facts["digest"]) == ('tiny "one"', "1a2b")
    assert facts["compiled by"] == f"nanoloom {__version__}"
    assert facts["target"] == str(HERE) and facts["precision"] == "f32"
    assert facts["input b"] == facts["output total"] == f"f32[{COUNT}]"
    assert facts["weights"] == f"{4 * COUNT} bytes"
    assert int(facts["workspace"].split()[0]) > 4 * COUNT
    assert str(STACK_BYTES) in facts["stack"]
    shapes = run(model, "--shape").stdout.splitlines()
    assert shapes[0] == f"input a: f32[{COUNT}]" and len(shapes) == 4
    usage = run(model, "--help").stdout
    assert f"usage: {model} a.npy b.npy" in usage and "--repeat N" in usage


def saved(folder: Path, array: np.ndarray) -> Path:
    path = folder / "wrong.npy"
    np.save(path, array)
    return path


GOOD = np.zeros(COUNT, np.float32)
ARRAYS = {
    "type": (GOOD.astype(np.float64), f"holds f64[{COUNT}]"),
    "complex": (GOOD.astype(np.complex64), f"holds <c8[{COUNT}]"),
    "big-endian": (GOOD.astype(">f4"), f"holds >f4[{COUNT}]"),
    "shape": (np.zeros((5, 7), np.float32), "holds f32[5, 7]"),
    "scalar": (np.float32(1), "holds f32[]"),
    "longer": (np.zeros(COUNT + 1, np.float32), f"holds f32[{COUNT + 1}]"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_arrays_are_refused(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    array, holds = ARRAYS[name]
    wrong, out = saved(tmp_path, np.asarray(array)), tmp_path / "out.npy"
    out.write_text("before")
    done = run(model, inputs[0], wrong, "-o", out)
    refused(done, f"{wrong}: {holds}, input b is f32[{COUNT}]")
    assert out.read_text() == "before"


FILES = {
    "empty": (b"", "is no .npy file"),
    "text": (b"hello, world", "is no .npy file"),
    "archive": (b"PK\x03\x04 and more", "is an archive (.npz), not a .npy file"),
    "no header": (b"\x93NUMPY\x01\x00", "has a damaged header"),
    "short header": (b"\x93NUMPY\x01\x00\x76\x00{'descr'", "has a damaged header"),
    "huge header": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "has a damaged header"),
    "no dict": (b"\x93NUMPY\x01\x00\x02\x00{}", "has a damaged header"),
    "records": (
        b"\x93NUMPY\x01\x00\x50\x00"
        + b"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,), }".ljust(
            0x50
        ),
        "holds records; save an array of numbers",
    ),
    "negative": (
        b"\x93NUMPY\x01\x00\x50\x00"
        + b"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }".ljust(0x50),
        "has a damaged header",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_wrong_files_are_refused(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    content, reason = FILES[name]
    more = "; save it again with numpy.save" if "damaged" in reason else ""
    wrong = tmp_path / "wrong.npy"
    wrong.write_bytes(content)
    refused(run(model, inputs[0], wrong), f"{wrong}: {reason}{more}")


def test_a_file_that_is_cut_off(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.npy"
    wrong.write_bytes(inputs[0].read_bytes()[:-5])
    need = 4 * COUNT
    told = f"{wrong}: is cut off: its array needs {need} bytes, {need - 5} are there"
    refused(run(model, inputs[0], wrong), told)


def test_columns_are_refused(tmp_path: Path, linking: Cache) -> None:
    from nanoloom.binary.table import Buffer, Step
    from nanoloom.interface.tensor import Element, Space, Tensor

    square = Tensor("x", Element.F32, (3, 4))
    buffers = tuple(Buffer(Space.INPUT) for _ in range(2)) + (Buffer(Space.OUTPUT),)
    steps = (Step("add_f32", 4, buffers, "twice"),)
    made = ProgramTable(steps, 0, 0, (square,), (square,))
    program = write(tmp_path, linking, made=made)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    right, wrong = tmp_path / "right.npy", tmp_path / "wrong.npy"
    np.save(right, x)
    np.save(wrong, np.asfortranarray(x))
    out = tmp_path / "y.npy"
    assert run(program, right, "-o", out).returncode == 0
    np.testing.assert_array_equal(np.load(out), 2 * x)
    told = "is stored by columns; save numpy.ascontiguousarray of it"
    refused(run(program, wrong), f"{wrong}: {told}")


WORDS = {
    "missing": (
        ("{a}",),
        "1 of 2 inputs given, input b is missing; --help shows the usage",
    ),
    "too many": (("{a}", "{b}", "{a}"), "{a}: the model has 2 inputs only"),
    "no file": (("{a}", "no.npy"), "no.npy: cannot be read: No such file or directory"),
    "a folder": (("{a}", "/"), "/: cannot be read: Is a directory"),
    "option": (
        ("--repeats", "3"),
        "--repeats: there is no such option; --help shows the usage",
    ),
    "number": (
        ("--repeat", "3x"),
        "--repeat: 3x is no whole number from 1 to 1000000",
    ),
    "zero": (("--threads=0",), "--threads: 0 is no whole number from 1 to 1024"),
    "no value": (
        ("{a}", "{b}", "-o"),
        "-o: a value is missing behind it; --help shows the usage",
    ),
    "outputs": (
        ("{a}", "{b}", *("-o", "{t}/1.npy", "-o", "{t}/2.npy", "-o", "{t}/3.npy")),
        "-o: 3 files given, the model has 2 outputs",
    ),
    "twice": (
        ("{a}", "{b}", "-o", "{t}/1.npy", "-o", "{t}/1.npy"),
        "{t}/1.npy: is named for two outputs",
    ),
    "twice by other ways": (
        ("{a}", "{b}", "-o", "{t}/1.npy", "-o", "{t}/../{t.name}/1.npy"),
        "{t}/../{t.name}/1.npy: is named for two outputs",
    ),
    "itself": (
        ("{a}", "{b}", "-o", "{m}"),
        "{m}: is this program itself; name another file",
    ),
    "printed": (
        ("{a}", "{b}", "-o", "-"),
        "-: an array is not printed; name a file .npy",
    ),
    "nowhere": (
        ("{a}", "{b}", "-o", "{t}/no/1.npy"),
        "{t}/no/1.npy: cannot be written: No such file or directory",
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_wrong_words_are_refused(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    words, sentence = WORDS[name]
    places = {"a": inputs[0], "b": inputs[1], "t": tmp_path, "m": model}
    done = run(model, *(word.format(**places) for word in words))
    refused(done, sentence.format(**places))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.npy"]


def test_a_full_disk_leaves_nothing(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out.npy"
    done = run(model, *inputs, "-o", out, "-o", "/dev/full")
    refused(done, "/dev/full: cannot be written: No space left on device")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.npy"]


def test_what_cannot_be_shown_is_an_error(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    """Of one line, which the C library forgets when it could not write it."""
    command = [model, *inputs, "-o", tmp_path / "out.npy"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "model: stdout: cannot be written to\n"


def test_a_limit_of_files_leaves_nothing(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    outputs = ["-o", tmp_path / "out.npy", "-o", "/dev/null"]
    words = shlex.join(map(str, [model, *inputs, *outputs]))
    command = ["sh", "-c", "ulimit -f 0; exec " + words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    refused(done, f"{tmp_path}/out.npy: cannot be written: File too large")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.npy"]


def test_a_file_that_is_cut_off_says_so(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    whole = model.read_bytes()
    (tmp_path / "part").mkdir()
    part = tmp_path / "part" / "model"
    part.write_bytes(whole[:-1])
    part.chmod(0o755)
    done = subprocess.run([part, *inputs], capture_output=True, text=True, check=False)
    size = len(whole)
    refused(
        done, f"the program's file ends at {size - 1} of {size} bytes: copy it again"
    )


def test_an_interrupted_program_leaves_nothing(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    """It waits for the reader of a pipe, with the first output under another name."""
    os.mkfifo(tmp_path / "pipe")
    words = ("-o", tmp_path / "out.npy", "-o", tmp_path / "pipe")
    program = subprocess.Popen([model, *inputs, *words])
    while not any(path.name.startswith("out.npy.") for path in tmp_path.iterdir()):
        assert program.poll() is None
    program.terminate()
    assert program.wait() == -signal.SIGTERM
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["a.npy", "b.npy", "pipe"]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_stated_stack_is_enough(
    model: Path, inputs: tuple[Path, Path], tmp_path: Path, threads: int
) -> None:
    limit = f"ulimit -s {STACK_BYTES // 1024}; exec "
    words = [model, *inputs, "-o", tmp_path / "out.npy", f"--threads={threads}"]
    command = limit + shlex.join(map(str, [*words, "-o", "/dev/null"]))
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    want = expected(np.load(inputs[0]), np.load(inputs[1]), WEIGHTS)[0]
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), want)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_every_feature_is_looked_for(target: Target) -> None:
    asked = "trial.c" if target.arch == "riscv64" else "isa.c"
    text = (RUNTIME / asked).read_text("utf-8")
    listed = set(re.findall(r'\{"([\w.-]+)",', text))
    listed |= {name for name, _, _ in target.isa.hwcaps}
    assert set(needed(target)) <= listed


def test_what_a_host_lacks_is_not_needed() -> None:
    import dataclasses

    v3 = by_name("x86-64-v3")
    assert "bmi2" in needed(v3)
    assert "bmi2" not in needed(dataclasses.replace(v3, features="-bmi2"))
    assert needed(by_name("rv64gcv-zvl256b")) == ("v",)
