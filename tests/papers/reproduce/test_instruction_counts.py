"""Instructions that an executable runs, as a plugin of qemu counts them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine
from nanoloom_papers.reproduce.instruction_counts import Count, counted, of_one_run
from tests.c_libraries import lend

M, K, N = 24, 32, 192
PRODUCTS = M * K * N
MODEL = f"""
<ir_version: 10, opset_import: ["": 21]>
product (float[{M}, {K}] x, float[{K}, {N}] w) => (float[{M}, {N}] y)
{{ y = MatMul(x, w) }}
"""
# So many rounds of seven instructions, four of them of vectors, and the way out; a
# scalar load beside theirs.
LOOP = """
    .globl _start
_start:
    li t0, ROUNDS
    vsetvli t1, zero, e32, m1, ta, ma
    addi sp, sp, -256
1:  vadd.vv v8, v8, v8
    vle32.v v9, (sp)
    vse32.v v8, (sp)
    vse8.v v8, (sp)
    flw ft0, 0(sp)
    addi t0, t0, -1
    bnez t0, 1b
    li a7, 93
    li a0, STATUS
    ecall
"""


@pytest.fixture(scope="module")
def count(
    plugin: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Count]:
    """`count(spec)`: of a product on a machine; each CPU's is compiled once."""
    folder = tmp_path_factory.mktemp("products")
    cache, made = Cache(folder / "cache"), dict[str, Path]()
    files = [folder / "x.npy", folder / "w.npy"]
    random = np.random.default_rng(0)
    for path, shape in zip(files, ((M, K), (K, N)), strict=True):
        np.save(path, random.standard_normal(shape).astype(np.float32))

    def of(spec: str) -> Count:
        target = machine(spec).target
        if target.name not in made:
            lend(target.arch, cache)
            text = onnx.parser.parse_model(MODEL)
            options = CompileOptions(target)
            program = nanoloom.compile(text, options=options, cache=cache)
            path = folder / target.name
            made[target.name] = program.save(path, form="executable")
        return of_one_run(plugin, machine(spec), made[target.name], files)

    return of


def loop(folder: Path, rounds: int, status: int = 0) -> Path:
    source, made = folder / "loop.s", folder / f"loop{rounds}"
    text = LOOP.replace("ROUNDS", str(rounds)).replace("STATUS", str(status))
    source.write_text(text)
    words = ["-target", "riscv64-linux-musl", "-mcpu=generic_rv64+m+a+f+d+c+v"]
    given = [str(zig()), "cc", *words, "-nostdlib", "-static", "-o", str(made)]
    subprocess.run([*given, str(source)], check=True, capture_output=True)
    return made


def test_every_instruction_is_counted(plugin: Path, tmp_path: Path) -> None:
    where = machine("riscv64+v:vlen=128")
    few, many = (counted(plugin, where, loop(tmp_path, n)) for n in (10, 1010))
    assert many - few == Count(7 * 1000, 4 * 1000, 1000, 2 * 1000)
    assert few.vectors == 41 and 70 < few.all < 80


def test_vectors_take_the_place_of_numbers(count: Callable[[str], Count]) -> None:
    scalar, vectors = count("riscv64"), count("riscv64+v:vlen=256")
    assert scalar.vectors == 0 and scalar.all > PRODUCTS
    assert vectors.vectors > PRODUCTS // (256 // 32) // 4  # four registers a group
    assert scalar.all > 5 * vectors.all


@pytest.mark.parametrize(
    ("cpu", "lengths"),
    [("riscv64+v:vlen=", (128, 256, 512)), ("aarch64+sve:sve=", (128, 256, 512))],
)
def test_the_same_file_executes_fewer_with_wider_vectors(
    cpu: str, lengths: tuple[int, int, int], count: Callable[[str], Count]
) -> None:
    one, two, four = (count(f"{cpu}{bits}") for bits in lengths)
    assert min(x.vectors for x in (one, two, four)) > 0
    assert one.all >= 1.6 * two.all and one.all >= 2.6 * four.all


def test_a_program_that_fails_is_no_count(plugin: Path, tmp_path: Path) -> None:
    where, program = machine("riscv64+v"), loop(tmp_path, 3, status=1)
    with pytest.raises(Error, match="qemu-riscv64 counted no instructions of loop3: "):
        counted(plugin, where, program)
