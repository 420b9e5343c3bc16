"""Programs as parts of others: bare objects, static libraries, their symbols."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nanoloom.binary.assemble import Compiled
from nanoloom.binary.bare import PROVIDED, workspace_bytes, write_bare
from nanoloom.binary.link import Source, compile_c, link_shared, merged
from nanoloom.binary.object_symbols import localized, wanted
from nanoloom.binary.static import FUNCTIONS, write_static_library
from nanoloom.binary.table import ProgramTable
from nanoloom.binary.toolchain import zig
from nanoloom.cache import Cache
from nanoloom.errors import Error, Unsupported
from nanoloom.target import by_name
from tests.runtime.native import TRIPLE, Block, expected, kernels, table

TASKS = 345
COUNT = 3 * TASKS
WEIGHTS = np.random.default_rng(5).standard_normal(COUNT).astype(np.float32)
TARGETS = {
    "x86_64": "x86-64-v2",
    "aarch64": "aarch64",
    "riscv64": "rv64gcv",
    "powerpc64le": "powerpc64le",
}
HERE = by_name(TARGETS[TRIPLE.split("-")[0]])
OK, NULL_POINTER, MISALIGNED = 0, 2, 3
Write = Callable[..., Path]


def compiled(triple: str = TRIPLE, made: ProgramTable | None = None) -> Compiled:
    block = Block(WEIGHTS.tobytes())
    return Compiled(kernels(triple), made or table(TASKS), block)  # type: ignore[arg-type]


def arrays() -> list[np.ndarray]:
    a, b = np.random.default_rng(6).standard_normal((2, COUNT)).astype(np.float32)
    return [a, b, np.zeros_like(a), np.zeros_like(a)]


def aligned(size: int, fill: int) -> tuple[np.ndarray, int]:
    """Bytes of a value, and the address of the first that is aligned."""
    block = np.full(size + 64, fill, np.uint8)
    return block, block.ctypes.data + -block.ctypes.data % 64


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> Callable[..., int]:
    """The bare object's `run`, in a library that has nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    write_bare(compiled(), folder / "m.o", "m", HERE, cache=cache)
    objects, name = [(folder / "m.o").read_bytes()], "nanoloom_m_run"
    link_shared(objects, folder / "m.so", exports=[name], cache=cache)
    return ctypes.CDLL(str(folder / "m.so"))[name]


def call(run: Callable[..., int], memory: list[int], workspace: int) -> int:
    inputs = (ctypes.c_void_p * 2)(*memory[:2])
    outputs = (ctypes.c_void_p * 2)(*memory[2:])
    return run(inputs, outputs, ctypes.c_void_p(workspace))


@pytest.mark.parametrize("fill", [0, 0xA5])
def test_a_bare_object_computes_in_the_memory_it_is_given(
    run: Callable[..., int], fill: int
) -> None:
    a, b, out, total = arrays()
    size = workspace_bytes(table(TASKS))
    block, workspace = aligned(size + 64, fill)
    memory = [x.ctypes.data for x in (a, b, out, total)]
    assert call(run, memory, workspace) == OK
    want = expected(a, b, WEIGHTS)
    assert (out == want[0]).all() and (total == want[1]).all()
    assert out.any() and total.any()
    behind = workspace + size - block.ctypes.data
    assert (block[behind:] == fill).all()
    assert (block[: workspace - block.ctypes.data] == fill).all()


def test_what_a_bare_object_refuses(run: Callable[..., int]) -> None:
    memory = [x.ctypes.data for x in arrays()]
    _, workspace = aligned(workspace_bytes(table(TASKS)), 0)
    assert call(run, memory, 0) == NULL_POINTER
    assert call(run, memory, workspace + 8) == MISALIGNED
    assert call(run, [0, *memory[1:]], workspace) == NULL_POINTER
    assert call(run, [memory[0] + 1, *memory[1:]], workspace) == MISALIGNED


@pytest.mark.parametrize("arch", TARGETS)
def test_a_bare_object_shows_its_functions_and_wants_no_more_than_memcpy(
    tmp_path: Path, cache: Cache, arch: str
) -> None:
    target, path = by_name(TARGETS[arch]), tmp_path / "tiny.o"
    header = write_bare(compiled(target.triple), path, "tiny", target, cache=cache)
    assert wanted(path.read_bytes()) <= PROVIDED
    assert shown(path, cache, target.triple) == {
        "nanoloom_tiny_run",
        "nanoloom_tiny_input",
        "nanoloom_tiny_output",
    }
    text = header.read_text("utf-8")
    size = workspace_bytes(table(TASKS))
    assert f"#define NANOLOOM_TINY_WORKSPACE {size}\n" in text
    assert "input 1: b, f32[1035], 4140 bytes" in text
    assert sorted(x.name for x in tmp_path.iterdir()) == ["tiny.h", "tiny.o"]


def shown(path: Path, cache: Cache, triple: str) -> set[str]:
    """The names that an object defines: what a twin of it defines a second time."""
    words = ("run", "input", "output", "create", "add_f32", "nanoloom_run")
    names = [w if "_" in w else f"nanoloom_{path.stem}_{w}" for w in words]
    found: set[str] = set()
    for name in names:
        text = f"int {name}(void);\nint {name}(void) {{ return 1; }}\n"
        (twin,) = compile_c([Source("twin", text)], triple=triple, cache=cache)
        try:
            merged([path.read_bytes(), twin], "twins", cache)
        except Error as error:
            assert "duplicate symbol" in str(error)
            found.add(name)
    return found


def test_functions_of_the_c_library_are_refused(tmp_path: Path, cache: Cache) -> None:
    text = "double fmod(double, double);\nvoid *f(void);\nvoid *f(void)"
    source = Source("calls", text + "{ return (void *)fmod; }\n")
    made = compiled()
    made.objects.extend(compile_c([source], triple=TRIPLE, cache=cache))
    with pytest.raises(Unsupported, match="its kernels call fmod of the C library; "):
        write_bare(made, tmp_path / "m.o", "m", HERE, cache=cache)
    assert not list(tmp_path.iterdir())


def test_an_object_that_is_its_own_header(tmp_path: Path, cache: Cache) -> None:
    with pytest.raises(Error, match=r"cannot end in \.h"):
        write_bare(compiled(), tmp_path / "m.h", "m", HERE, cache=cache)


MAIN = """
#include <stdio.h>
#include "one.h"
#include "two.h"
#include "three.h"
static float a[{count}], b[{count}], out[{count}], total[{count}];
static _Alignas(64) char workspace[NANOLOOM_THREE_WORKSPACE];
int main(void)
{{
    const void *in[] = {{a, b}};
    void *outs[] = {{out, total}};
    for (int i = 0; i < {count}; i++)
        a[i] = b[i] = (float)(i % 7) * 0.25f;
    struct nanoloom_one *one = nanoloom_one_create(2);
    struct nanoloom_two *two = nanoloom_two_create(1);
    int failed = nanoloom_one_run(one, in, outs) || nanoloom_two_run(two, in, outs);
    failed = failed || nanoloom_three_run(in, outs, workspace);
    nanoloom_one_destroy(one);
    nanoloom_two_destroy(two);
    printf("%d %.9g %.9g\\n", failed, out[5], total[{count} - 1]);
    return failed;
}}
"""


def test_several_models_are_parts_of_one_c_program(
    tmp_path: Path, cache: Cache
) -> None:
    """Equal kernels, equal runtimes, no name of them seen."""
    triple = {"triple": TRIPLE, "cache": cache}
    write_static_library(compiled(), tmp_path / "one.a", "one", **triple)
    write_static_library(compiled(), tmp_path / "two.o", "two", **triple)
    write_bare(compiled(), tmp_path / "three.a", "three", HERE, cache=cache)
    (tmp_path / "main.c").write_text(MAIN.format(count=COUNT))
    files = ["main.c", "one.a", "two.o", "three.a"]
    command = [str(zig()), "cc", "-O1", "-Wall", "-Werror", *files]
    subprocess.run([*command, "-o", "main"], cwd=tmp_path, check=True)
    x = (np.arange(COUNT) % 7 * 0.25).astype(np.float32)
    out, total = expected(x, x, WEIGHTS)
    said = subprocess.check_output([tmp_path / "main"], text=True)
    assert said == f"0 {out[5]:.9g} {total[-1]:.9g}\n"
    header = (tmp_path / "one.h").read_text("utf-8")
    assert all(f"nanoloom_one_{word}(" in header for word in FUNCTIONS)


def test_local_names_come_first_and_relocations_follow(cache: Cache) -> None:
    """Calls go to the function that they went to, wherever its symbol is now."""
    text = "".join(
        f"int f{i}(int x);\nint f{i}(int x) {{ return x * {i} + {i}; }}\n"
        for i in range(9)
    )
    calls = " + ".join(f"f{i}(x)" for i in range(9))
    heads = "".join(f"int f{i}(int);\n" for i in range(9))
    use = f"{heads}int use(int x);\nint use(int x) {{ return {calls}; }}\n"
    sources = [Source("use", use), Source("defined", text)]
    flags = ("-fno-addrsig", "-O0", "-fno-sanitize=undefined")
    made = compile_c(sources, triple=TRIPLE, flags=flags, cache=cache)
    code = localized(merged(made, "all", cache), ["use", "f7"])
    assert wanted(code) == set()

    def loaded(folder: Path) -> int:
        link_shared([code], folder / "a.so", exports=["use", "f7"], cache=cache)
        library = ctypes.CDLL(str(folder / "a.so"))
        assert library["f7"](2) == 21
        return library["use"](2)

    assert cache.in_draft(loaded) == sum(2 * i + i for i in range(9))
