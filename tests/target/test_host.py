"""From the features of a machine, real or told, to the target that describes it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nanoloom.errors import Error, Unsupported
from nanoloom.target import Cache, Target, by_name, host
from nanoloom.target.peaks import assembly

X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
INTEL, AMD = "GenuineIntel", "AuthenticAMD"
# LLVM reports every x86 feature, there or not.
ABSENT = dict.fromkeys(("amx-tile", "amx-bf16", "avx512f", "avx10.2", "avx2"), False)


def told(name: str, *, less: str = "", more: str = "") -> dict[str, bool]:
    """LLVM's report of a machine that is this CPU but for some features."""
    present = by_name(name).extensions | set(more.split())
    lacking = dict.fromkeys(less.split(), False)
    return ABSENT | dict.fromkeys(sorted(present), True) | lacking


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        ("x86-64-v2", INTEL),
        ("x86-64-v3", AMD),
        ("cascadelake", INTEL),
        ("icelake-server", INTEL),
        ("sapphirerapids", INTEL),
        ("graniterapids", INTEL),
        ("znver4", AMD),
        ("znver5", AMD),
        ("alderlake", INTEL),
        ("arrowlake-s", INTEL),
        ("sierraforest", INTEL),
    ],
)
def test_each_cpu_is_recognized(name: str, vendor: str) -> None:
    found = host.describe(X86, told(name), vendor=vendor, amx=True)
    assert found.name == f"host-{name}" and found.cpu == name
    assert found.extensions == by_name(name).extensions
    assert found.vector == by_name(name).vector
    assert found.matrix == by_name(name).matrix


def test_tiles_are_gone_when_the_kernel_refuses_them() -> None:
    found = host.describe(X86, told("graniterapids"), vendor=INTEL, amx=False)
    assert found.cpu == "graniterapids" and found.matrix is None
    assert not any(name.startswith("amx") for name in found.extensions)
    assert "-amx-tile" in found.features and "+amx" not in found.features


def test_what_a_hypervisor_hides_is_switched_off_last() -> None:
    features = told("graniterapids", less="amx-fp16 gfni", more="avx10.1")
    found = host.describe(X86, features, vendor=INTEL, amx=True)
    words = found.features.split(",")
    assert found.cpu == "graniterapids" and found.matrix is not None
    assert not {"amx-fp16", "gfni"} & found.extensions
    assert max(k for k, word in enumerate(words) if word[0] == "+") < min(
        words.index(word) for word in ("-amx-fp16", "-gfni", "-avx10.2")
    )
    assert host.describe(X86, features, vendor=INTEL, amx=True) == found


def test_hidden_wide_vectors_are_not_used() -> None:
    wide = {name for name in told("graniterapids") if "avx512" in name}
    features = told("graniterapids", less=" ".join(wide))
    found = host.describe(X86, features, vendor=INTEL)
    assert found.vector.bits == 256 and found.has("avxvnni")
    text = assembly(found)
    assert "zmm" not in text and "ymm" in text and "{vex}" in text
    assert "zmm" in assembly(host.describe(X86, told("znver5"), vendor=AMD))


def test_a_cpu_is_not_taken_for_another_makers() -> None:
    without_tiles = told("sapphirerapids", less="amx-tile amx-bf16 amx-int8")
    assert host.describe(X86, without_tiles, vendor=INTEL).cpu == "sapphirerapids"
    assert host.describe(X86, told("icelake-server"), vendor=AMD).cpu == "znver4"


def test_sve_needs_the_length_of_the_facts() -> None:
    graviton3 = told("neoverse-v1")

    def named(vscale: int, cpu: str = "neoverse-v1") -> Target:
        return host.describe(ARM, graviton3, cpu=cpu, vscale=vscale)

    assert named(2).name == "host-neoverse-v1" and named(2).cpu == "neoverse-v1"
    # A name that LLVM did not find may promise features that nobody reported.
    assert named(2, cpu="cortex-a78").cpu == "generic"
    assert "+i8mm" in named(2).features.split(",")
    assert named(1).vector.vscale_min == 1
    assert not named(0).vector.scalable


def test_an_arm_cpu_is_not_apples_by_likeness() -> None:
    cortex_a76 = told("apple-m1", less="fp16fml")
    for cpu, known in (("cortex-a76", "cortex-a76"), ("cortex-a78", "generic")):
        found = host.describe(ARM, cortex_a76, cpu=cpu)
        assert found.name == "host-cortex-a76" and found.cpu == known
        assert found.has("neon", "dotprod", "fullfp16") and not found.has("fp16fml")
    apple = host.describe(ARM, cortex_a76, cpu="apple-m1")
    assert apple.cpu == "apple-m1" and apple.vector == by_name("apple-m1").vector
    assert "-fp16fml" in apple.features.split(",")


def test_risc_v_promises_no_more_than_v_does() -> None:
    found = host.describe("riscv64-unknown-linux-gnu", {"v": True, "zba": True})
    assert found.vector == by_name("rv64gcv").vector and found.abi == "lp64d"
    assert found.features.startswith("+m,+a,+f,+d,+c,+v,+zvl128b")
    assert found.has("v", "zvl128b") and "-" not in found.features


@pytest.mark.parametrize("name", ["cortex-a55", "neoverse-n1", "neoverse-n2"])
def test_of_cores_that_are_alike_the_named_one(name: str) -> None:
    found = host.describe(ARM, told(name), cpu=name, vscale=1)
    assert (found.name, found.cpu) == (f"host-{name}", name)
    assert found.vector == by_name(name).vector


def test_a_risc_v_core_is_one_that_has_a_name() -> None:
    features = told("spacemit-x60")
    found = host.describe("riscv64", features, cpu="spacemit-x60")
    assert found.name == "host-spacemit-x60" and found.vector.min_bits == 256
    assert host.describe("riscv64", features, cpu="generic-rv64").name == "host-rv64gcv"
    lacking = features | {"v": False}
    assert host.describe("riscv64", lacking, cpu="spacemit-x60").name == "host-riscv64"


def test_risc_v_without_vectors() -> None:
    found = host.describe("riscv64-unknown-linux-gnu", {"v": False})
    assert found.vector == by_name("riscv64").vector and not found.vector.scalable
    assert not found.has("v") and "+v" not in found.features.split(",")


@pytest.mark.parametrize(
    ("triple", "features"),
    [
        (X86, {"sse2": True}),
        ("powerpc64le-unknown-linux-gnu", {"vsx": True}),
    ],
)
def test_an_unknown_machine_is_refused(triple: str, features: dict[str, bool]) -> None:
    with pytest.raises(
        Unsupported, match=r"this machine \(.*\) has none of the vector"
    ):
        host.describe(triple, features)


def _sysfs(folder: Path, rows: dict[str, tuple[str, str, str]]) -> Path:
    for name, (level, kind, size) in rows.items():
        (folder / name).mkdir(parents=True)
        for file, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name / file).write_text(text + "\n")
    return folder


def test_caches_are_read_from_the_kernel(tmp_path: Path) -> None:
    rows = {
        "index0": ("1", "Data", "48K"),
        "index1": ("1", "Instruction", "64K"),
        "index2": ("2", "Unified", "2048K"),
        "index3": ("3", "Unified", "1M"),
    }
    read = host._caches  # pyright: ignore[reportPrivateUsage]
    assert read(_sysfs(tmp_path / "a", rows)) == Cache(48 << 10, 2 << 20, 1 << 20)
    del rows["index3"]
    assert read(_sysfs(tmp_path / "b", rows)) == Cache(48 << 10, 2 << 20, 0)
    rows["index0"] = ("1", "Data", "")
    assert read(_sysfs(tmp_path / "c", rows)) is None
    assert read(tmp_path / "nothing") is None


def test_this_machine_is_described() -> None:
    here = host.this_machine()
    assert here is host.this_machine() and here.name.startswith("host-")
    known = by_name(here.name.removeprefix("host-"))
    assert here.vector == known.vector and here.arch == known.arch
    assert (here.matrix is not None) == here.has("amx-tile")
    if here.matrix is not None:
        assert host.enable_amx()  # asking again does no harm


def test_llvm_knows_every_feature_of_this_machine(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assembly(host.host())
    assert capfd.readouterr().err == ""
    assembly(replace(host.host(), features="+nonsense"))
    assert "not a recognized feature" in capfd.readouterr().err


def held(machine: str, name: str) -> Target:
    vendor = AMD if machine.startswith("znver") else INTEL
    return host.held_to(host.describe(X86, told(machine), vendor=vendor), name)


def test_a_host_is_held_to_a_lesser_cpu() -> None:
    """The code is that of --target: nothing of the machine is left in it."""
    for name in ("x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4+avx512vnni"):
        assert held("znver5", name) == by_name(name)
    machine = host.describe(X86, told("znver5"), vendor=AMD)
    assert host.held_to(machine, "") is machine


def test_a_cpu_that_lacks_what_is_asked_is_refused() -> None:
    with pytest.raises(Unsupported, match="is x86-64-v4, and this CPU has no avx512bw"):
        held("znver3", "x86-64-v4")
    with pytest.raises(Unsupported, match="is riscv64, and this CPU is x86_64"):
        held("znver5", "riscv64")
    with pytest.raises(Error, match=f"{host.HOST_VARIABLE}: there is no target named"):
        held("znver5", "x86-64-v9")


@pytest.mark.parametrize("name", ["x86-64-v2", "nonsense"])
def test_the_environment_names_the_host(name: str, tmp_path: Path) -> None:
    """In every process, remembered or not."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom nanoloom.cache import Cache\n"
        "from nanoloom.errors import Error\n"
        "from nanoloom.target import cached_host, host\n"
        "for look in (host.host, lambda: cached_host.host(Cache(Path(sys.argv[1])))):\n"
        "    try:\n        print(look().name)\n"
        "    except Error as error:\n        print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=os.environ | {host.HOST_VARIABLE: name},
        capture_output=True,
        text=True,
        check=True,
    )
    for said in ran.stdout.splitlines():
        assert said == name or "there is no target named 'nonsense'" in said
    assert len(ran.stdout.splitlines()) == 2
