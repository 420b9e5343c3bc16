"""The table of CPUs: names, values that fit together, and what LLVM makes of them."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

import nanoloom.target
from nanoloom.errors import Error
from nanoloom.target import TARGETS, Target, by_name
from nanoloom.target.by_name import aliases_of
from nanoloom.target.peak_loops import loops_of, sums_of, symbol
from nanoloom.target.peaks import assembly

EVERY = pytest.mark.parametrize("target", TARGETS, ids=str)


def test_a_name_finds_its_target() -> None:
    assert len({target.name for target in TARGETS}) == len(TARGETS)
    assert all(by_name(target.name) is target for target in TARGETS)


def test_a_misspelt_name_lists_near_ones() -> None:
    with pytest.raises(Error, match=r"named 'graniterapid'; did you mean granite.*\?"):
        by_name("graniterapid")
    with pytest.raises(Error, match=r"'cortex-a78'; did you mean cortex-a76 or"):
        by_name("cortex-a78")
    with pytest.raises(Error, match=r"named '§'; known: x86-64-v1, .*power10$"):
        by_name("§")


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("riscv64+v", "rv64gcv"),
        ("RISCV64+zvl128b+v", "rv64gcv"),
        ("riscv64+v+zvl512b", "rv64gcv-zvl512b"),
        ("rv64gcv+zvl256b", "rv64gcv-zvl256b"),
        ("znver5+avxvnni", "znver5"),
        ("aarch64+neon", "aarch64"),
        ("znver5+bf16+vnni", "znver5"),
        ("alderlake+vnni", "alderlake"),
        ("graniterapids+amx", "graniterapids"),
        ("powerpc64le+vsx", "powerpc64le"),
        ("spacemit-x60+zvfh+zba", "spacemit-x60"),
    ],
)
def test_a_row_of_the_table_by_its_features(name: str, same: str) -> None:
    assert by_name(name) is by_name(same)


def test_features_add_to_a_target() -> None:
    sve = by_name("aarch64+sve")
    assert sve.vector.scalable and sve.vector.vscale_max == 16 and sve.has("sve")
    assert sve.features == "+neon,+sve" and str(sve) == "aarch64+sve"
    both = by_name("aarch64+sve2+bf16")
    assert both.has("sve", "sve2", "bf16") and both.vector == sve.vector
    assert not by_name("aarch64+dotprod").vector.scalable
    long = by_name("riscv64+v+zvl1024b")
    assert long.vector.min_bits == 1024 and "+zvl1024b" in long.features
    halves = by_name("riscv64+v+zvfh+zba+zvl256b")
    assert halves == by_name("riscv64+v+zvl256b+zba+zvfh")
    assert halves.has("zba", "zvfh") and halves.vector.min_bits == 256
    assert by_name("riscv64+zvfh") == by_name("riscv64+v+zvfh")
    scalar = by_name("riscv64")
    assert not scalar.vector.scalable and not scalar.has("v")
    tiles = by_name("x86-64-v4+amx-int8")
    assert tiles.matrix and tiles.has("amx-tile", "amx-int8")
    outer = by_name("aarch64+sve2+sme")
    assert outer.has("sve", "sme") and outer.vector == sve.vector and outer.matrix
    assert not by_name("aarch64+sme").vector.scalable
    wide = by_name("powerpc64le+power9-vector")
    assert wide.has("vsx", "power9-vector") and wide.features == "+power9-vector"
    assert "+avxvnni" in by_name("x86-64-v3+avxvnni").features
    short = by_name("x86-64-v4+bf16+vnni+amx")
    assert short.has("avx512bf16", "avx512vnni", "amx-bf16", "amx-int8", "amx-tile")
    assert by_name("x86-64-v3+vnni") == by_name("x86-64-v3+avxvnni")
    assert by_name("riscv64+v+zvfh").widens_f16
    assert not by_name("riscv64+v").widens_f16


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aarch64+svee", "aarch64 has no feature 'svee' to add; known: sve"),
        ("x86-64-v3+avx512f", "x86-64-v3 has no feature 'avx512f'"),
        ("x86-64-v3+bf16", "x86-64-v3 has no feature 'avx512bf16'"),
        ("x86-64-v2+vnni", "x86-64-v2 has no feature 'vnni' to add; known: gfni$"),
        ("x86-64-v2+avxvnni", "x86-64-v2 has no feature 'avxvnni' to add"),
        ("x86-64-v1+vnnii", "x86-64-v1 has no feature 'vnnii' to add"),
        ("riscv64+v+zvf", "rv64gcv has no feature 'zvf' to add; known: .*zvfh"),
        ("riscv64+vv", "riscv64 has no feature 'vv' to add; known: v$"),
        ("sifive-p670+zvl256b", "sifive-p670 has no feature 'zvl256b' to add"),
        ("riscv64+v+sve", "rv64gcv has no feature 'sve' to add; known: "),
        (
            "powerpc64le+power9",
            "powerpc64le has no feature 'power9' to add; known: power9-vector",
        ),
        ("powerpc64", "no target named 'powerpc64'; did you mean powerpc64le"),
        (
            "risc64+v",
            r"no target named 'risc64\+v'; did you mean riscv64 or riscv64\+v",
        ),
    ],
)
def test_features_that_a_target_cannot_have(name: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        by_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "aarch64+sve",
        "aarch64+sve2+bf16+i8mm",
        "aarch64+dotprod",
        "aarch64+sve2+sme",
        "riscv64+v+zvl1024b+zba",
        "riscv64+v+zvfh+zvfbfmin",
        "x86-64-v1",
        "x86-64-v4+avx512bf16+avx512vnni",
    ],
)
def test_llvm_knows_the_features_that_are_added(name: str) -> None:
    done = _emitted(by_name(name), "define void @f() {\n  ret void\n}\n")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_target_is_a_value_that_prints_short() -> None:
    spr = by_name("sapphirerapids")
    assert repr(spr) == "Target(sapphirerapids)" and str(spr) == "sapphirerapids"
    less = dataclasses.replace(spr, matrix=None)
    assert less != spr and len({spr, less, dataclasses.replace(spr)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        spr.cpu = "znver5"  # type: ignore[misc]


@EVERY
def test_facts_fit_together(target: Target) -> None:
    vector = target.vector
    assert vector.min_bits * vector.vscale_max >= vector.bits * vector.vscale_min
    assert vector.scalable or vector.vscale_min == vector.vscale_max == 1
    assert 2 <= vector.accumulators < vector.registers
    assert sums_of(target) >= vector.accumulators  # else a peak would not be one
    assert target.caches.l1d < target.caches.l2
    assert (target.matrix is None) == (not target.has("amx-tile"))
    assert (vector.bits == 512) == target.has("avx512f")


def test_lanes_count_elements_per_vscale() -> None:
    assert [by_name("znver5").lanes(bits) for bits in (8, 16, 32, 64)] == [
        64,
        32,
        16,
        8,
    ]
    assert by_name("neoverse-v1").lanes(32) == 4  # vector<[4]xf32> is one Z register
    assert by_name("rv64gcv-zvl256b").lanes(32) == 2
    assert by_name("neoverse-v1").flops_per_cycle(32) == 2 * 8 * 2
    assert by_name("znver4").flops_per_cycle(64) == 2 * 8 * 1


MNEMONICS = {
    "f32": ("vfmadd", "fmla", "vfmacc.vv", "mulps", "fmadd.s", "xvmadd"),
    "f64": ("vfmadd", "fmla", "vfmacc.vv", "mulpd", "fmadd.d", "xvmadd"),
    "bf16": ("vdpbf16ps", "bfdot"),
    "u8s8": ("vpdpbusd", "usdot"),
    "s8s8": ("sdot", "vpdpbssd"),
    "bf16-amx": ("tdpbf16ps",),
    "u8s8-amx": ("tdpbusd",),
    "s8s8-amx": ("tdpbssd",),
}


@EVERY
def test_loops_compile_to_the_instruction_and_no_memory(
    target: Target, capfd: pytest.CaptureFixture[str]
) -> None:
    text = assembly(target)
    assert capfd.readouterr().err == ""  # LLVM knows the CPU and every feature
    for loop in loops_of(target):
        inner = _inner_loop(text, symbol(loop.name))
        words = MNEMONICS[loop.name]
        found = [line for line in inner if any(word in line for word in words)]
        # Without vectors LLVM takes them apart.
        numbers = target.lanes(int(loop.name[1:])) if target.is_scalar else 1
        assert len(found) == numbers * loop.instructions(sums_of(target))
        addresses = [line for line in inner if "(" in line or "[" in line]
        assert not addresses, "the loop goes to memory"
        assert not any("call" in line for line in inner)
        if target.vector.bits == 512 and "amx" not in loop.name:
            assert all("zmm" in line for line in found)


def test_the_check_of_a_loop_fails_on_a_wrong_one() -> None:
    text = assembly(by_name("znver5"))
    assert any("(" in line for line in _inner_loop(text, "read"))


def _inner_loop(text: str, function: str) -> list[str]:
    """The instructions from the last label that a later line jumps back to."""
    lines = text.split(f"\n{function}:")[1].split("\n.Lfunc_end")[0].splitlines()
    lines = [line.split("#")[0].split("//")[0].strip() for line in lines]
    for number, line in enumerate(lines):
        label = line.removesuffix(":")
        after = lines[number + 1 :]
        jumps = [at for at, each in enumerate(after) if each.split()[-1:] == [label]]
        if line.endswith(":") and not label.startswith(".Ltmp") and jumps:
            inner = after[: jumps[0]]
            if not any(each.endswith(":") for each in inner):
                return [each for each in inner if each and not each.startswith(".")]
    raise AssertionError(f"no loop in {function}")


# For an extension: the instruction, the intrinsic with its type, the arguments.
PROBES = {
    "sse4.2": (
        "pmuldq",
        "<2 x i64> @llvm.x86.sse41.pmuldq",
        "<4 x i32> %x, <4 x i32> %x",
    ),
    "power9-vector": (
        "xviexpsp",
        "<4 x float> @llvm.ppc.vsx.xviexpsp",
        "<4 x i32> %x, <4 x i32> %x",
    ),
    "avx512fp16": (
        "vfmadd",
        "<32 x half> @llvm.fma.v32f16",
        "<32 x half> %x, <32 x half> %x, <32 x half> %x",
    ),
    "avx512bf16": (
        "vdpbf16ps",
        "<16 x float> @llvm.x86.avx512bf16.dpbf16ps.512",
        "<16 x float> %y, <32 x bfloat> %x, <32 x bfloat> %x",
    ),
    "avx512vnni": (
        "vpdpbusd",
        "<16 x i32> @llvm.x86.avx512.vpdpbusd.512",
        "<16 x i32> %y, <64 x i8> %x, <64 x i8> %x",
    ),
    "avx512vbmi": (
        "vpermb",
        "<64 x i8> @llvm.x86.avx512.permvar.qi.512",
        "<64 x i8> %x, <64 x i8> %x",
    ),
    "avxvnni": (
        "vpdpbusd",
        "<8 x i32> @llvm.x86.avx512.vpdpbusd.256",
        "<8 x i32> %y, <32 x i8> %x, <32 x i8> %x",
    ),
    "avxvnniint8": (
        "vpdpbssd",
        "<8 x i32> @llvm.x86.avx2.vpdpbssd.256",
        "<8 x i32> %y, <32 x i8> %x, <32 x i8> %x",
    ),
    "avxvnniint16": (
        "vpdpwsud",
        "<8 x i32> @llvm.x86.avx2.vpdpwsud.256",
        "<8 x i32> %y, <16 x i16> %x, <16 x i16> %x",
    ),
    "avxneconvert": (
        "vbcstnebf162ps",
        "<8 x float> @llvm.x86.vbcstnebf162ps256",
        "ptr %p",
    ),
    "gfni": (
        "gf2p8mulb",
        "<16 x i8> @llvm.x86.vgf2p8mulb.128",
        "<16 x i8> %x, <16 x i8> %x",
    ),
    "amx-fp16": ("tdpfp16ps", "void @llvm.x86.tdpfp16ps", "i8 0, i8 1, i8 2"),
    "bf16": (
        "bfdot",
        "<4 x float> @llvm.aarch64.neon.bfdot.v4f32.v8bf16",
        "<4 x float> %y, <8 x bfloat> %x, <8 x bfloat> %x",
    ),
    "i8mm": (
        "smmla",
        "<4 x i32> @llvm.aarch64.neon.smmla.v4i32.v16i8",
        "<4 x i32> %y, <16 x i8> %x, <16 x i8> %x",
    ),
    "fullfp16": (
        ".8h",
        "<8 x half> @llvm.fma.v8f16",
        "<8 x half> %x, <8 x half> %x, <8 x half> %x",
    ),
    "sve2": (
        "saba",
        "<vscale x 4 x i32> @llvm.aarch64.sve.saba.nxv4i32",
        "<vscale x 4 x i32> %x, <vscale x 4 x i32> %x, <vscale x 4 x i32> %x",
    ),
}

EMIT = """
import sys
import llvmlite.binding as llvm
triple, cpu, features = sys.argv[1:]
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
target = llvm.Target.from_triple(triple)
machine = target.create_target_machine(cpu=cpu, features=features)
print(machine.emit_assembly(llvm.parse_assembly(sys.stdin.read())))
"""


def _emitted(target: Target, text: str) -> subprocess.CompletedProcess[str]:
    """In another process: LLVM aborts on what a CPU cannot do."""
    words = (target.triple, target.cpu, target.features)
    command = [sys.executable, "-c", EMIT, *words]
    return subprocess.run(command, input=text, capture_output=True, text=True)


def _probe(extension: str) -> str:
    """A function that has to use `extension`, named for it."""
    _, function, arguments = PROBES[extension]
    pairs = [pair.rsplit(" ", 1) for pair in arguments.split(", ")]
    types = ", ".join(f"{t} immarg" if t == "i8" else t for t, _ in pairs)
    parameters = ", ".join({v: f"{t} {v}" for t, v in pairs if v[0] == "%"}.values())
    result = function.split(" @")[0]
    keep, end = ("", "") if result == "void" else ("%r = ", " %r")
    return f"""declare {function}({types})
define {result} @"probe {extension}"({parameters}) {{
  {keep}call {function}({arguments})
  ret {result}{end}
}}
"""


@EVERY
def test_llvm_agrees_that_the_cpu_has_its_extensions(target: Target) -> None:
    claimed = sorted(target.extensions & PROBES.keys())
    done = _emitted(target, "".join(_probe(extension) for extension in claimed))
    assert done.returncode == 0, done.stderr
    for extension in claimed:
        body = done.stdout.split(f'"probe {extension}":')[1].split("func_end")[0]
        assert PROBES[extension][0] in body, extension


def test_llvm_refuses_what_a_cpu_lacks() -> None:
    done = _emitted(by_name("skylake-avx512"), _probe("avx512bf16"))
    assert done.returncode != 0 and "LLVM ERROR" in done.stderr


def test_the_targets_need_errors_and_the_cache_alone() -> None:
    folder = Path(nanoloom.target.__file__).parent
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                words = "errors", "fork_lock", "target", "cache"
                allowed = tuple(f"nanoloom.{word}" for word in words)
                assert not node.module.startswith("nanoloom") or (
                    node.module.startswith(allowed)
                ), f"{file.name} imports {node.module}"


def test_importing_is_light() -> None:
    code = "import nanoloom.target, nanoloom.cache, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    heavy = {"llvmlite", "torch_mlir", "numpy", "onnx", "platformdirs", "tempfile"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        ("rv64gcv", "riscv64+v"),
        ("rv64gcv-zvl256b", "riscv64+zvl256b"),
        ("rv64gcv-zvl256b", "rv64gcv+zvl256b"),
        ("rv64gcv+zvfh", "riscv64+v+zvfh"),
        ("x86-64-v4+avx512bf16+avx512vnni", "x86-64-v4+bf16+vnni"),
        ("x86-64-v3+avxvnni", "x86-64-v3+vnni"),
    ],
)
def test_another_name_of_a_target(name: str, alias: str) -> None:
    target = by_name(name)
    assert target.name == by_name(alias).name == name
    assert alias in aliases_of(target) and name not in aliases_of(target)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_other_names_are_those_of_the_same_target(target: Target) -> None:
    for alias in aliases_of(target):
        assert by_name(alias) == target
