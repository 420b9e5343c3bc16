"""The repository's own text and Python files, as its tests of style read them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = (
    ".ci",
    "benchmarks",
    "docs",
    "examples",
    "nanoloom",
    "papers",
    "tests",
    "wheels",
)
TEXT = {".c", ".h", ".md", ".py", ".toml", ".txt", ".yaml"}

ASKS = {
    ("os", "environ"),
    ("os", "getenv"),
    ("os", "cpu_count"),
    ("os", "sched_getaffinity"),
    ("os", "uname"),
    ("llvm", "get_host_cpu_name"),
    ("llvm", "get_host_cpu_features"),
    ("llvm", "get_process_triple"),
    ("llvm", "get_default_triple"),
}
SYSTEM = re.compile(r"/(proc|sys)/")


@dataclass(frozen=True)
class Source:
    """A Python file."""

    path: str
    text: str

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Its syntax tree, flat; the module first."""
        return tuple(ast.walk(ast.parse(self.text)))

    @cached_property
    def module(self) -> ast.Module:
        module = self.nodes[0]
        assert isinstance(module, ast.Module)
        return module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def layer(self) -> str:
        """The part of nanoloom it belongs to; "" for __init__.py and __main__.py."""
        name = self.path.split("/")[1].removesuffix(".py")
        return "" if name.startswith("__") else name

    @cached_property
    def imports(self) -> tuple[tuple[int, str], ...]:
        """(line, module.name) of every import, those inside functions included."""
        return tuple(_imports(self.nodes))

    def layers(self) -> Iterator[tuple[int, str]]:
        """(line, layer) of every import from nanoloom's own parts."""
        for line, module in self.imports:
            parts = module.split(".")
            if parts[0] == "nanoloom" and parts[1:] not in ([], ["__version__"]):
                yield line, parts[1]

    def functions(self) -> Iterator[tuple[str, int, int]]:
        """(name, line, number of lines) of every function."""
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                end = node.end_lineno or node.lineno
                yield node.name, node.lineno, end - node.lineno + 1

    def questions(self) -> list[int]:
        """The lines that ask something of the machine or the environment."""
        docstrings = {id(n.value) for n in self.nodes if isinstance(n, ast.Expr)}
        return sorted(_questions(self.nodes, docstrings))


def _imports(nodes: tuple[ast.AST, ...]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                yield node.lineno, f"{node.module}.{name.name}"


def _questions(nodes: tuple[ast.AST, ...], docstrings: set[int]) -> Iterator[int]:
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=attribute):
                if (module, attribute) in ASKS or module == "platform":
                    yield node.lineno
            case ast.Constant(value=str(text)):
                if SYSTEM.match(text) and id(node) not in docstrings:
                    yield node.lineno
            case _:
                pass


@cache
def files() -> tuple[Path, ...]:
    """The text files of the repository."""
    inside = (p for folder in FOLDERS for p in (ROOT / folder).rglob("*"))
    return tuple(
        path
        for path in sorted((*ROOT.iterdir(), *inside))
        if path.is_file() and (path.suffix in TEXT or path.name in {"Makefile", "run"})
    )


def relative(path: Path) -> str:
    """A path as the repository writes it."""
    return path.relative_to(ROOT).as_posix()


@cache
def python(folder: str = "") -> tuple[Source, ...]:
    """The Python files, or those under one folder."""
    if folder:
        return tuple(s for s in python() if s.path.startswith(f"{folder}/"))
    return tuple(
        Source(relative(path), path.read_text("utf-8"))
        for path in files()
        if path.suffix == ".py"
    )


def lines(text: str) -> Iterator[tuple[int, str]]:
    return enumerate(text.splitlines(), 1)
