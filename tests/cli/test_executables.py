"""nanoloom compile -o NAME: a program for this machine or another."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nanoloom.api.program import Program
from nanoloom.binary import executable, libc
from nanoloom.cache import Cache
from nanoloom.cli.emulation import written
from nanoloom.runtime import emulation
from tests.c_libraries import lend
from tests.cli import models
from tests.cli.conftest import Command
from tests.cli.test_refusals import refused


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.DENSE, "dense.onnx")


def test_a_program_computes_what_run_does(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    program = tmp_path / "dense"
    said = nanoloom("compile", dense, "-d", "batch=3", "-o", program)
    assert (said.status, said.told) == (0, f"nanoloom: wrote {program}")
    assert os.access(program, os.X_OK)
    rng = np.random.default_rng(3)
    for name, shape in (("x", (3, 7)), ("w", (7, 5))):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype("f4"))
    given = [f"{name}={tmp_path / name}.npy" for name in ("x", "w")]
    words = ("-i", given[0], "-i", given[1], "-o", tmp_path / "want")
    assert nanoloom("run", dense, *words).status == 0
    (tmp_path / "got").mkdir()
    files = [str(tmp_path / name) for name in ("x.npy", "w.npy")]
    subprocess.run([program, *files, "-o", str(tmp_path / "got")], check=True)
    for name in ("y.npy", "z.npy"):
        want = np.load(tmp_path / "want" / name)
        np.testing.assert_array_equal(np.load(tmp_path / "got" / name), want)
        assert want.any()


def test_the_program_knows_the_models_name_and_digest(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    told: list[str] = []
    for name in ("a", "b"):
        words = ("-d", "batch=1", "-o", tmp_path / name)
        assert nanoloom("compile", dense, *words).status == 0
        command = [tmp_path / name, "--info"]
        told.append(subprocess.check_output(command, text=True))
    assert told[0] == told[1] and "model: dense\n" in told[0]
    assert len(told[0].split("digest: ")[1].split()[0]) == 64


def test_run_does_not_load_a_program(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    program = tmp_path / "dense"
    assert nanoloom("compile", dense, "-d", "batch=3", "-o", program).status == 0
    refused(nanoloom("run", program), "is a program by itself; run it")


# ---- on another machine


@pytest.fixture(scope="module")
def lent(cache: Path) -> None:
    """The C library of the machine that is emulated here."""
    lend("riscv64", Cache(cache))


@pytest.mark.usefixtures("lent")
def test_run_gives_the_same_under_emulation(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    there = ("--emulate", "riscv64+v:vlen=256")
    found: list[dict[str, np.ndarray]] = []
    for number, more in enumerate(((), there)):
        folder = tmp_path / str(number)
        said = nanoloom("run", dense, "-d", "batch=3", "--json", "-o", folder, *more)
        assert said.status == 0, said.err
        told = json.loads(said.out)
        assert [x["random"] for x in told["inputs"]] == [True, True]
        files = [x["file"] for x in told["outputs"]]
        assert files == [str(folder / name) for name in ("y.npy", "z.npy")]
        found.append({name: np.load(name) for name in files})
    for here, emulated in zip(*(x.values() for x in found), strict=True):
        assert (here.dtype, here.shape) == (emulated.dtype, emulated.shape)
        np.testing.assert_allclose(emulated, here, rtol=0, atol=1e-5)
        assert abs(here).max() > 1e-2


@pytest.mark.usefixtures("lent")
def test_verify_compares_what_is_emulated(
    dense: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("verify", dense, "-d", "batch=3", "--emulate", "riscv64:vlen=128")
    said = nanoloom(*words)
    assert said.status == 0 and "agrees with ONNX Runtime" in said.out

    def zeros(*_: object) -> dict[str, np.ndarray]:
        return {name: np.zeros((3, 5), np.float32) for name in ("y", "z")}

    monkeypatch.setattr(emulation, "run_emulated", zeros)
    assert nanoloom(*words).status == 1


@pytest.mark.usefixtures("lent")
def test_an_index_out_of_range_is_refused_there_as_here(
    tmp_path: Path, nanoloom: Command
) -> None:
    text = "g (float[4, 3] t, int64[2] i) => (float[2, 3] y) { y = Gather(t, i) }"
    model = models.write(tmp_path, text)
    np.save(tmp_path / "i.npy", np.array([1, 4]))
    words = ("run", model, "-i", f"i={tmp_path / 'i.npy'}")
    here = nanoloom(*words)
    refused(here, "4 is outside -4..3")
    there = nanoloom(*words, "--emulate", "riscv64+v")
    assert (there.status, there.told) == (1, here.told)


@pytest.mark.usefixtures("lent")
def test_types_that_a_model_does_not_declare_are_the_programs(
    tmp_path: Path, nanoloom: Command
) -> None:
    text = (
        "g (float[5, 7] x) => (i, h) { i = ArgMax<axis = 1>(x) h = Cast<to = 16>(x) }"
    )
    model, folder = models.write(tmp_path, text), tmp_path / "there"
    x = np.random.default_rng(0).standard_normal((5, 7), np.float32)
    np.save(tmp_path / "x.npy", x)
    words = ("run", model, "-i", f"x={tmp_path / 'x.npy'}", "--json")
    said = nanoloom(*words, "-o", folder, "--emulate", "riscv64")
    assert said.status == 0, said.err
    kinds = [each["dtype"] for each in json.loads(said.out)["outputs"]]
    assert kinds == ["int64", "bfloat16"]
    assert (np.load(folder / "i.npy") == x.argmax(1, keepdims=True)).all()


@pytest.mark.usefixtures("lent")
def test_values_of_inputs_that_decide_shapes_are_those_of_the_emulated_run(
    tmp_path: Path, nanoloom: Command
) -> None:
    model = models.write(tmp_path, models.BY_VALUE)
    for n in (3, 6):
        np.save(tmp_path / "n.npy", np.array(n))
        words = (
            "run",
            model,
            "-i",
            f"n={tmp_path / 'n.npy'}",
            "-o",
            tmp_path / "there",
        )
        said = nanoloom(*words, "--emulate", "riscv64")
        assert said.status == 0, said.err
        assert (np.load(tmp_path / "there" / "q.npy") == np.arange(n)).all()


@pytest.mark.usefixtures("lent")
def test_what_runs_there_is_for_all_sizes(
    tmp_path: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is not for these, it is their variant that says what is wrong."""
    model, variants = models.write(tmp_path, models.POSITIONS), list[Path]()

    def noting(
        program: Program, arrays: dict[str, np.ndarray], path: Path
    ) -> tuple[str, ...]:
        variants.append(path)
        return written(program, arrays, path)

    monkeypatch.setattr("nanoloom.cli.emulation.written", noting)
    for length in (5, 7, 65):
        np.save(tmp_path / "x.npy", np.ones(length, np.float32))
        words = ("run", model, "-i", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "y")
        said = nanoloom(*words, "--emulate", "riscv64")
        assert (said.status, len(variants)) == ((0, 0) if length < 65 else (1, 1))
        if length < 65:
            got = np.load(tmp_path / "y" / "y.npy")
            assert got.shape == (length,) and (got == 2).all()
    assert "its inputs do not fit together" in said.told


@pytest.mark.usefixtures("lent")
def test_bounds_hold_for_what_is_run_and_verified(
    tmp_path: Path, dense: Path, nanoloom: Command
) -> None:
    for rows, word in ((3, "y"), (5, "batch is 5, at most 4")):
        for name, shape in (("x", (rows, 7)), ("w", (7, 5))):
            np.save(tmp_path / f"{name}.npy", np.ones(shape, np.float32))
        given = [f"-i{name}={tmp_path / name}.npy" for name in ("x", "w")]
        for verb in ("run", "verify"):
            for there in ((), ("--emulate", "riscv64")):
                said = nanoloom(verb, dense, "-d", "batch=1..4", *given, *there)
                assert (said.status, word in said.out + said.told) == (rows > 4, True)
    refused(nanoloom("run", dense, "-d", "batch=1..4"), "no number is given for")


def test_emulation_is_refused_where_it_cannot_be(
    tmp_path: Path,
    dense: Path,
    nanoloom: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = tmp_path / "dense.so"
    assert nanoloom("compile", dense, "-d", "batch=3", "-o", library).status == 0
    there = ("--emulate", "riscv64+v")
    refused(nanoloom("run", library, *there), "a model is emulated", status=2)
    said = nanoloom("verify", dense, "--per-layer", *there)
    refused(said, "on this machine only", status=2)
    for word, told in (
        ("riscv64:vlen=3", "one of 128, 256"),
        ("z80", "no target named 'z80'"),
    ):
        refused(nanoloom("run", dense, "--emulate", word), told, status=2)
    monkeypatch.setenv("PATH", "")
    refused(nanoloom("run", dense, *there), "apt-get install qemu-user")


def test_the_first_program_for_a_machine_says_why_it_takes_longer(
    tmp_path: Path, dense: Path, nanoloom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(libc, "_built", interrupted)
    monkeypatch.setattr(executable, "c_library", libc.c_library)  # nothing lends it
    words = ("-d", "batch=3", "--target", "aarch64", "-o", tmp_path / "dense")
    said = nanoloom("compile", dense, *words, "--no-cache")
    assert said.status == 130
    assert said.told == (
        "nanoloom: building the C library for aarch64, once: about a minute"
    )
    assert not (tmp_path / "dense").exists()
