"""Compiling C and linking: what is shown, what is kept, what an error says."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from pathlib import Path

import pytest
from llvmlite.binding import ObjectFileRef

from nanoloom.binary import toolchain
from nanoloom.binary.elf import PAGE, Machine
from nanoloom.binary.kept_objects import kept_together
from nanoloom.binary.link import (
    RUNTIME,
    Parameters,
    Source,
    compile_c,
    link_shared,
)
from nanoloom.cache import Cache, key
from nanoloom.errors import Error
from tests.runtime.native import TRIPLE, Block

GOOD = Source(
    "answer",
    """
    __attribute__((visibility("default"))) int answer(void);
    __attribute__((visibility("default"))) int secret(void);
    int secret(void) { return VALUE; }
    int answer(void) { return secret(); }
    """,
    ("VALUE=42",),
)
NEW = Source("new", GOOD.text, GOOD.defines)  # no other test has compiled it


def compiled(source: Source, cache: Cache) -> list[bytes]:
    return compile_c([source], triple=TRIPLE, cache=cache)


def test_compile_and_link(tmp_path: Path, cache: Cache) -> None:
    made = compiled(GOOD, cache)
    output = tmp_path / "answer.so"
    link_shared(made, output, exports=["answer"], cache=cache)
    library = ctypes.CDLL(str(output))
    assert library.answer() == 42
    with pytest.raises(AttributeError):
        _ = library.secret
    assert [p.name for p in tmp_path.iterdir()] == ["answer.so"]


def test_exports_may_be_globs(tmp_path: Path, cache: Cache) -> None:
    output = tmp_path / "answer.so"
    made = compiled(GOOD, cache)
    link_shared(made, output, exports=["sec*", "none_*"], cache=cache)
    assert ctypes.CDLL(str(output)).secret() == 42


def test_an_object_is_compiled_once(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compiled(GOOD, cache)
    other = Source(GOOD.name, GOOD.text, ("VALUE=43",))
    assert compiled(other, cache) != first
    monkeypatch.setattr(toolchain, "zig", lambda: Path("/nowhere/zig"))
    assert compiled(GOOD, cache) == first


def test_the_same_sources_make_the_same_library(tmp_path: Path, cache: Cache) -> None:
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        objects = compiled(GOOD, Cache(folder / "cache"))
        link_shared(objects, folder / "a.so", exports=["answer"], cache=cache)
        made.append((folder / "a.so").read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "body",
    [
        "int f(void) { return x; }",
        "int f(int unused);\nint f(int unused) { return 1; }",
        '#include "absent.h"',
        "syntax error",
    ],
)
def test_bad_source(cache: Cache, body: str) -> None:
    """An unused parameter too: -Wall -Wextra -Werror."""
    with pytest.raises(Error, match=r"compiling bad.c for .* failed: .*bad.c:\d+:\d+"):
        compiled(Source("bad", body), cache)
    assert not list((cache.root / "tmp").iterdir())


def test_one_bad_source_stops_the_others(cache: Cache) -> None:
    sources = [Source("bad", "x"), GOOD]
    with pytest.raises(Error, match=r"bad\.c"):
        compile_c(sources, triple=TRIPLE, cache=cache)
    assert not list((cache.root / "tmp").iterdir())


def test_a_failed_link_leaves_what_was_there(tmp_path: Path, cache: Cache) -> None:
    made = compiled(GOOD, cache)
    twice = compiled(Source("again", GOOD.text, GOOD.defines), cache)
    output = tmp_path / "a.so"
    output.write_text("older")
    with pytest.raises(Error, match=r"linking a.so failed: .*duplicate symbol: \w+"):
        link_shared([*made, *twice], output, exports=["answer"], cache=cache)
    assert output.read_text() == "older"
    assert [p.name for p in tmp_path.iterdir()] == ["a.so"]


def test_a_folder_that_is_not_there(tmp_path: Path, cache: Cache) -> None:
    made = compiled(GOOD, cache)
    output = tmp_path / "absent" / "a.so"
    with pytest.raises(Error, match=r"absent: cannot write a.so: No such file"):
        link_shared(made, output, exports=["answer"], cache=cache)


def test_an_output_that_is_a_folder(tmp_path: Path, cache: Cache) -> None:
    made = compiled(GOOD, cache)
    output = tmp_path / "a.so"
    output.mkdir()
    with pytest.raises(Error, match=r"cannot write a.so: Is a directory"):
        link_shared(made, output, exports=["answer"], cache=cache)


def test_what_nobody_waits_for_is_nice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    monkeypatch.setattr(os, "setpriority", lambda *words: told.append(words[-1]))
    for nice in (0, 15):
        toolchain.Run(["version"], "asking zig", tmp_path, nice).wait()
    assert told == [15]


def test_missing_ziglang_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Error, match="ziglang is not installed; pip install ziglang"):
        compiled(NEW, cache)


def test_an_empty_ziglang_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Spec:
        origin = str(tmp_path / "__init__.py")

    cache = Cache(tmp_path / "cache")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: Spec)
    with pytest.raises(Error, match="ziglang holds no zig; pip install ziglang"):
        compiled(NEW, cache)
    (tmp_path / "zig").write_text("not executable")
    with pytest.raises(Error, match=r"cannot start .*zig: .*; pip install ziglang"):
        compiled(NEW, cache)


def test_zig_needs_no_home_and_writes_into_the_given_folder_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "HOME",
        "XDG_CACHE_HOME",
        "ZIG_GLOBAL_CACHE_DIR",
        "ZIG_LOCAL_CACHE_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    cache = Cache(tmp_path / "cache")
    made = compiled(GOOD, cache)
    link_shared(made, tmp_path / "a.so", exports=["answer"], cache=cache)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.so", "cache"]


SIZED = ("NANOLOOM_SIZED",)
SESSION = (*SIZED, "NANOLOOM_SESSION")
COUNTED = ("NANOLOOM_COUNTED",)
GROWN = (*SIZED, *COUNTED, "NANOLOOM_GROWN")
HANDLES = {  # of files that are compiled for a model: what its handle may have
    "model": [(), SIZED, SESSION, COUNTED, GROWN],
    "model_counted": [COUNTED, GROWN],
    "model_growth": [GROWN],
    "model_sizes": [SIZED, SESSION, GROWN],
    "model_session": [SESSION],
}
RUNTIME_SOURCES = sorted(path.stem for path in RUNTIME.glob("*.c"))
ONE_THREAD = "NANOLOOM_SINGLE_THREAD"  # which few files ask for, and no header
EVERY_TARGET = [
    f"{arch}-unknown-linux-{libc}"
    for arch in ("x86_64", "aarch64", "riscv64")
    for libc in ("gnu", "musl")
]


def architecture(triple: str) -> str:
    return triple.partition("-")[0]


@pytest.mark.drawn(one_in=2, kind=architecture)
@pytest.mark.parametrize("triple", EVERY_TARGET)
def test_the_runtime_compiles_for_every_target(
    tmp_path: Path, cache: Cache, triple: str
) -> None:
    strict = ("-Wconversion", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wshadow")
    sources = [
        Source.of_runtime(name, "NANOLOOM_MODEL=m", *handle, *more)
        for name in RUNTIME_SOURCES
        for handle in HANDLES.get(name, [()])
        for more in ((), (ONE_THREAD,))
        if not more or ONE_THREAD in (RUNTIME / f"{name}.c").read_text()
    ]
    assert not [p for p in RUNTIME.glob("*.h") if ONE_THREAD in p.read_text()]
    made = compile_c(sources, triple=triple, flags=strict, cache=cache)
    numbers = {Machine.of(code).number for code in made}
    assert numbers == {{"x": 62, "a": 183, "r": 243}[triple[0]]}


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_links_for_every_target(tmp_path: Path, cache: Cache, arch: str) -> None:
    triple = f"{arch}-unknown-linux-gnu"
    runtime = ("control", "clock", "threads", "pool", "cpus")
    sources = [GOOD, *(Source.of_runtime(x) for x in runtime)]
    made = compile_c(sources, triple=triple, cache=cache)
    output = tmp_path / "a.so"
    link_shared(made, output, exports=["answer"], cache=cache)
    assert Machine.of(output.read_bytes()) == Machine.of(made[0])


def test_names_the_systems_libraries(tmp_path: Path, cache: Cache) -> None:
    output = tmp_path / "a.so"
    made = compiled(GOOD, cache)
    link_shared(made, output, exports=["answer"], cache=cache)
    content = output.read_bytes()
    for name in (b"libc.so.6", b"libm.so.6", b"libpthread.so.0"):
        assert b"\0" + name + b"\0" in content


READER = Source(
    "reader",
    """
    extern const unsigned char block[];
    __attribute__((visibility("default"))) const unsigned char *get(void);
    const unsigned char *volatile where = block;
    const unsigned char *get(void) { return where; }
    """,
)
SIZES = (1, 7, 4096, 100_001)


def check_block(output: Path, content: bytes) -> None:
    """`get` returns the content, on a page that nothing can write to."""
    library = ctypes.CDLL(str(output))
    library.get.restype = ctypes.c_void_p
    address = library.get()
    assert address % 4096 == 0
    assert ctypes.string_at(address, len(content)) == content
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights = line.split()[:2]
        begin, end = (int(word, 16) for word in span.split("-"))
        if begin <= address < end:
            assert rights == "r--p"
            return
    raise AssertionError("the block is not mapped")


@pytest.mark.parametrize("size", SIZES)
def test_parameters_in_a_library(tmp_path: Path, cache: Cache, size: int) -> None:
    content = os.urandom(size)
    output = tmp_path / "a.so"
    link_shared(
        compiled(READER, cache),
        output,
        exports=["get"],
        cache=cache,
        parameters=Parameters("block", Block(content)),
    )
    check_block(output, content)
    assert str(tmp_path).encode() not in output.read_bytes()


@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_parameters_of_other_targets(tmp_path: Path, cache: Cache, arch: str) -> None:
    data = os.urandom(5000)
    triple = f"{arch}-unknown-linux-gnu"
    made = compile_c([READER], triple=triple, cache=cache)
    output = tmp_path / "a.so"
    inside = Parameters("block", Block(data))
    link_shared(made, output, exports=["get"], cache=cache, parameters=inside)
    content = output.read_bytes()
    assert content.index(data) % PAGE == 0
    sections = ObjectFileRef.from_data(content).sections()
    assert data in [section.data() for section in sections]


def test_machine_of_something_else() -> None:
    for code in (b"", b"\x7fELF\x01\x01", b"\x7fELF\x02\x01", b"MZ" * 50):
        with pytest.raises(ValueError, match="64-bit ELF"):
            Machine.of(code)


@pytest.mark.parametrize("sizes", [(), (0,), (1, 2), (7, 0, 64, 1001)])
def test_what_is_kept_together_comes_back_as_it_was(
    cache: Cache, sizes: tuple[int, ...]
) -> None:
    made = [bytes(range(256)) * 4 for _ in sizes]
    made = [code[:size] for code, size in zip(made, sizes, strict=True)]
    for make in (lambda _: made, lambda _: pytest.fail("it is there")):
        assert kept_together(key("kept", sizes), cache, make) == made
