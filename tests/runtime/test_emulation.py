"""Executables for other machines under qemu: one file at every vector length."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from nanoloom.api.program import Program
from nanoloom.binary.executable import STACK_BYTES
from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.errors import Error, InputError
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import (
    Machine,
    emulator,
    failed,
    machine,
    run_emulated,
)
from tests.c_libraries import lend

EPSILON = float(np.finfo(np.float32).eps)
# A perceptron, a convolution, a product of bytes, and of two rows with keys that lie
# along the sum; sizes that no vector divides.
MODEL = """
<ir_version: 10, opset_import: ["": 21]>
block (float[5, 37] x, float[1, 5, 11, 9] image, uint8[5, 37] q,
       float[3, 2, 37] query, float[3, 41, 37] keys,
       float[37, 83] a, float[83] b, float[83, 19] c,
       float[13, 5, 3, 3] k, int8[37, 19] d)
   => (float[5, 19] y, float[1, 13, 11, 9] f, int32[5, 19] i, float[3, 2, 41] scores)
{
    h = MatMul(x, a)
    s = Add(h, b)
    r = Relu(s)
    y = MatMul(r, c)
    e = Conv<pads = [1, 1, 1, 1]>(image, k)
    f = Relu(e)
    i = MatMulInteger(q, d)
    turned = Transpose<perm = [0, 2, 1]>(keys)
    scores = MatMul(query, turned)
}
"""
INPUTS = ("x", "image", "q", "query", "keys")
# One file runs at all lengths of a row.
LENGTHS = {
    "riscv64": ("",),
    "riscv64+v": (":vlen=128", ":vlen=256", ":vlen=512", ":vlen=1024"),
    "aarch64+sve": (":sve=128", ":sve=256", ":sve=512", ":sve=1024", ":sve=2048"),
    "aarch64": ("",),
    "aarch64+sme": (":sme=128", ":sme=256", ":sme=512", ":sme=1024", ":sme=2048"),
    "powerpc64le": ("",),
    "x86-64-v3": ("",),
    "cortex-a55": ("",),
    "neoverse-n2": ("",),
    "sifive-x280": ("",),
    "sifive-p670": (":vlen=128", ":vlen=512"),
    "spacemit-x60": ("",),
}
Arrays = dict[str, np.ndarray]
Build = Callable[[str], tuple[Program, Path]]


def arrays() -> Arrays:
    """Values of all inputs of MODEL, the weights among them."""
    rng = np.random.default_rng(11)
    made: Arrays = {}
    for info in parser.parse_model(MODEL).graph.input:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        if info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            made[info.name] = rng.standard_normal(shape).astype(np.float32)
        else:
            low, kind = (0, np.uint8) if info.name == "q" else (-127, np.int8)
            made[info.name] = rng.integers(low, 128, shape).astype(kind)
    return made


def model(values: Arrays) -> onnx.ModelProto:
    """MODEL with its weights in it."""
    made = parser.parse_model(MODEL)
    weights = [info for info in made.graph.input if info.name not in INPUTS]
    for info in weights:
        array = onnx.numpy_helper.from_array(values[info.name], info.name)
        made.graph.initializer.append(array)
        made.graph.input.remove(info)
    return made


def convolved(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """A convolution of 3 x 3 that keeps the image's size, in the arrays' own type."""
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwij,fcij->nfhw", windows, kernel)


def expected(v: Arrays) -> dict[str, tuple[np.ndarray, np.ndarray | float]]:
    """Each output in float64 or exactly, and how far rounding may lead from it.

    A sum of K products is within (K + 2) eps of the sum of their sizes; what the first
    layer is off goes through the second.
    """
    wide = {name: array.astype(np.float64) for name, array in v.items()}
    x, a, b, c = (wide[name] for name in "xabc")
    hidden = np.maximum(x @ a + b, 0)
    off = (37 + 3) * EPSILON * (abs(x) @ abs(a) + abs(b))
    bound = (83 + 2) * EPSILON * ((hidden + off) @ abs(c)) + off @ abs(c)
    image, k = wide["image"], wide["k"]
    keys = wide["keys"].swapaxes(1, 2)
    window = (45 + 2) * EPSILON * convolved(abs(image), abs(k))
    return {
        "y": (hidden @ c, bound),
        "f": (np.maximum(convolved(image, k), 0), window),
        "i": (v["q"].astype(np.int32) @ v["d"].astype(np.int32), 0.0),
        "scores": (
            wide["query"] @ keys,
            (37 + 2) * EPSILON * abs(wide["query"]) @ abs(keys),
        ),
    }


def agrees(got: Arrays, values: Arrays) -> bool:
    wanted = expected(values)
    assert list(got) == list(wanted)
    close = [(abs(got[n] - want) <= bound).all() for n, (want, bound) in wanted.items()]
    return all(close)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """`build(target)`: the model as an executable; each is compiled once."""
    folder = tmp_path_factory.mktemp("emulated")
    cache, made = Cache(folder / "cache"), dict[str, tuple[Program, Path]]()

    def built(name: str) -> tuple[Program, Path]:
        if name not in made:
            target = machine(name).target
            lend(target.arch, cache)
            options = CompileOptions(target)
            program = compile(model(arrays()), options=options, threads=2, cache=cache)
            made[name] = program, program.save(folder / name, form="executable")
        return made[name]

    return built


def run(built: tuple[Program, Path], where: Machine, values: Arrays) -> Arrays:
    program, path = built
    given = [values[x.name] for x in program.inputs]
    kinds = {x.name: x.dtype for x in program.outputs}
    return run_emulated(where, path, given, kinds, threads=2)


def cpu(spec: str) -> str:
    return spec.partition(":")[0]


@pytest.mark.drawn(one_in=3, kind=cpu)
@pytest.mark.parametrize(
    "spec", [target + each for target, lengths in LENGTHS.items() for each in lengths]
)
def test_the_numbers_are_right_at_every_length(build: Build, spec: str) -> None:
    values = arrays()
    got = run(build(cpu(spec)), machine(spec), values)
    assert agrees(got, values)
    for name, array in got.items():
        assert array.dtype == (np.int32 if name == "i" else np.float32)
        assert not agrees(got | {name: 0 * array}, values)


def test_lengths_of_a_vector_are_what_they_say(build: Build) -> None:
    """A file that promises itself more than the machine has refuses it."""
    values = arrays()
    told = r"registers of this CPU have 128 bits; .* rv64gcv-zvl256b, 256 to 65536"
    with pytest.raises(InputError, match=told):
        run(build("rv64gcv-zvl256b"), machine("riscv64+v:vlen=128"), values)
    longer = run(build("rv64gcv-zvl256b"), machine("riscv64+v:vlen=512"), values)
    assert agrees(longer, values)


DOUBLES = """
<ir_version: 10, opset_import: ["": 21]>
sums (double[7, 45] x, int64[7, 45] n, double[45, 19] w, int64[1] axes)
    => (double[7] s, double[7] m, int64[7] t, int64[7] l, double[7, 19] p,
        double[7, 45] r)
{
    s = ReduceSum<keepdims = 0>(x, axes)
    m = ReduceMax<keepdims = 0>(x, axes)
    t = ReduceSum<keepdims = 0>(n, axes)
    l = ReduceMin<keepdims = 0>(n, axes)
    p = MatMul(x, w)
    a = Abs(x)
    one = Constant<value_float = 1.0>()
    big = CastLike(one, x)
    above = Add(a, big)
    r = Mod<fmod = 1>(above, a)
}
"""


@pytest.mark.parametrize(
    "spec", ["riscv64:vlen=128", "riscv64:vlen=512", "aarch64:sve=256"]
)
def test_elements_as_wide_as_a_unit_of_the_width(tmp_path: Path, spec: str) -> None:
    """Of RISC-V's vectors one element for each 64 bits: MLIR's traps."""
    rng, where, cache = np.random.default_rng(2), machine(spec), Cache(tmp_path)
    x = rng.standard_normal((7, 45))
    n = rng.integers(-(2**62), 2**62, (7, 45)) // 45
    made = parser.parse_model(DOUBLES)
    axes = made.graph.input.pop()
    made.graph.initializer.append(
        onnx.numpy_helper.from_array(np.array([1]), axes.name)
    )
    lend(where.target.arch, cache)
    program = compile(made, options=CompileOptions(where.target), cache=cache)
    path = program.save(tmp_path / "sums", form="executable")
    w = rng.standard_normal((45, 19))
    got = run((program, path), where, {"x": x, "n": n, "w": w})
    error = 2 * 47 * np.finfo(np.float64).eps  # numpy's own sums round, too
    assert (abs(got["s"] - x.sum(1)) <= error * abs(x).sum(1)).all()
    assert (abs(got["p"] - x @ w) <= error * (abs(x) @ abs(w))).all()
    np.testing.assert_array_equal(got["r"], np.fmod(abs(x) + 1, abs(x)))
    np.testing.assert_array_equal(got["m"], x.max(1))
    np.testing.assert_array_equal(got["t"], n.sum(1))
    np.testing.assert_array_equal(got["l"], n.min(1))


@pytest.mark.parametrize(
    ("name", "cpu", "missing"),
    [
        ("riscv64+v", "rv64,v=false", "v"),
        ("riscv64+v+zba", "rv64,v=true,zba=false", "zba"),
        ("riscv64+v+zbs", "rv64,v=true,zbs=false", "zbs"),
        ("aarch64+sve", "cortex-a53", "sve"),
        ("aarch64+sme", "max,sme=off", "sme"),
        ("x86-64-v3", "Nehalem", "avx"),
        ("power9", "power8", "power9-vector"),
    ],
)
def test_a_cpu_below_the_level_is_named(
    build: Build, name: str, cpu: str, missing: str
) -> None:
    target = machine(name).target
    lesser = Machine(target, (target.isa.emulator.program, "-cpu", cpu))
    told = f"^this CPU has no {missing}; the program is compiled for {target.name}"
    with pytest.raises(InputError, match=told.replace("+", r"\+")):
        run(build(name), lesser, arrays())


@pytest.mark.parametrize("spec", ["riscv64+v:vlen=512", "aarch64+sve:sve=512"])
def test_the_stated_stack_is_enough(build: Build, spec: str) -> None:
    where, values = machine(spec), arrays()
    few = Machine(where.target, (*where.command, "-s", str(STACK_BYTES)))
    assert agrees(run(build(spec.partition(":")[0]), few, values), values)


def test_a_program_for_another_machine_is_not_called_here(build: Build) -> None:
    program, _ = build("riscv64+v")
    with pytest.raises(Error, match="is for riscv64, not for this machine; save"):
        program({name: arrays()[name] for name in INPUTS})


def test_what_the_program_refuses_is_its_own_sentence(build: Build) -> None:
    values = arrays() | {"q": np.zeros((5, 36), np.uint8)}
    told = r"input2.npy: holds u8\[5, 36\], input q is u8\[5, 37\]$"
    with pytest.raises(InputError, match=told):
        run(build("riscv64+v"), machine("riscv64+v"), values)


# ---- words


@pytest.mark.parametrize(
    ("spec", "target", "words"),
    [
        ("riscv64:vlen=256", "rv64gcv", "rv64,v=true,vlen=256,elen=64,vext_spec=v1.0"),
        ("rv64gcv-zvl512b", "rv64gcv-zvl512b", "rv64,v=true,vlen=512"),
        ("aarch64:sve=512", "aarch64+sve", "max,sve-default-vector-length=64"),
        ("neoverse-v1", "neoverse-v1", "max,sve-default-vector-length=32"),
        ("aarch64", "aarch64", "max"),
        ("aarch64+sme:sme=512", "aarch64+sme", "max,sme-default-vector-length=64"),
        (
            "aarch64+sve+sme:sme=2048",
            "aarch64+sve+sme",
            "max,sve-default-vector-length=16,sme-default-vector-length=256",
        ),
        ("powerpc64le", "powerpc64le", "power10"),
        ("x86-64-v3", "x86-64-v3", "max"),
    ],
)
def test_names_of_machines(spec: str, target: str, words: str) -> None:
    found = machine(spec)
    assert found.target.name == target
    assert found.command[0] == f"qemu-{found.target.arch.replace('power', 'p')}"
    assert found.command[2].startswith(words)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("riscv64+v:vlen=384", "384 bits .* for rv64gcv; vlen is one of 128, 256, 512"),
        ("rv64gcv-zvl256b:vlen=128", "128 bits .*; vlen is one of 256, 512, 1024$"),
        ("neoverse-v1:sve=512", "512 bits .*; sve is one of 256$"),
        ("riscv64+v:vlen", "vectors of no bits"),
        ("riscv64+v:sve=128", "'sve' says nothing about rv64gcv; like riscv64"),
        ("x86-64-v3:vlen=128", "'vlen' says nothing about x86-64-v3"),
        ("aarch64+sve:sme=512", r"'sme' says nothing about aarch64\+sve"),
        ("aarch64+sme:sme=384", "384 bits .*; sme is one of 128, 256, 512, 1024, 2048"),
        ("risc64+v:vlen=128", r"no target named 'risc64\+v'; did you mean riscv64 or"),
    ],
)
def test_machines_that_there_are_not(spec: str, told: str) -> None:
    with pytest.raises(Error, match=told):
        machine(spec)


def test_an_extension_that_the_emulator_lacks_is_not_asked_for() -> None:
    command = ("qemu-riscv64", "-cpu", "rv64", "-s", "65536")
    call = Machine(
        machine("riscv64").target, command, ("zba", "no-such-extension")
    ).call()
    assert call[1:] == ["-cpu", "rv64,zba=true", "-s", "65536"]


def test_an_emulators_own_error_is_not_the_programs() -> None:
    said = "x\nqemu-riscv64: ../translate.c:213: Assertion `x != NULL' failed.\n"
    done = subprocess.CompletedProcess([], -11, "", said)
    told = "^the emulator failed: qemu-riscv64: .* failed.; a newer qemu-user may not$"
    assert re.match(told, str(failed(done, "model")))
    done = subprocess.CompletedProcess([], -11, "", "")
    assert str(failed(done, "model")) == "the emulated program ended with status -11"
    done = subprocess.CompletedProcess([], -4, "", "")
    told = (
        "^the emulator does not know an instruction of the program; a newer qemu-user"
    )
    assert re.match(told, str(failed(done, "model")))


def test_a_missing_emulator_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    told = "^qemu-riscv64 is not installed; install it: apt-get install qemu-user$"
    with pytest.raises(Error, match=told):
        emulator("qemu-riscv64")
