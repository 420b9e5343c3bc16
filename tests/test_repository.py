"""The rules of this repository that a program can read: see CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.sources import ROOT, Source, files, lines, python, relative

# A file imports from rows above its own, never from rows below.
ORDER = (
    "errors",
    "fork_lock",
    "garbage",
    "lazy_import",
    "file_digest",
    "trusted_files",
    "sealed_files",
    "manifest",
    "interface",
    "cache",
    "target",
    "options",
    "report",
    "frontend",
    "weights",
    "graph",
    "nest",
    "ir",
    "dynamic",
    "linalg",
    "notation",
    "custom_operators",
    "cost",
    "fusion",
    "memory",
    "kernels",
    "schedule",
    "vector",
    "llvm",
    "binary",
    "cpp",
    "rust",
    "runtime",
    "workers",
    "search",
    "run_constant",
    "compiler",
    "compile_open",
    "emit",
    "model",
    "explain",
    "api",
    "torch",
    "compile_program",
    "scoring",
    "ray",
    "dask",
    "spark",
    "onnxruntime",
    "inspect",
    "quantization",
    "cli",
)

MEASURING = "papers/nanoloom_papers/reproduce"
# Who may ask the machine, and for what.
MAY_ASK = {
    "nanoloom/trusted_files.py": "whose files the user wants to run",
    "nanoloom/cache/store.py": "where the user wants the cache",
    "nanoloom/target/host.py": "what CPU this is",
    "nanoloom/target/cached_host.py": "whether it still is the CPU that was remembered",
    "nanoloom/runtime/threads.py": "how many threads suit the process",
    "nanoloom/runtime/topology.py": "which CPUs those threads suit",
    "nanoloom/runtime/node_memory.py": "how its system asks for a node's memory",
    "nanoloom/runtime/memory_use.py": "which pages of a program are in memory",
    "nanoloom/runtime/loading.py": "for a copy of code in memory, by its descriptor",
    "nanoloom/torch/tensor_words.py": "what lies behind tensors that it makes itself",
    "nanoloom/frontend/memory_claims.py": "how much memory a model may ask for",
    "nanoloom/binary/output_files.py": "whether a file without a name can be given one",
    "nanoloom/binary/toolchain.py": "the environment its child process inherits",
    f"{MEASURING}/contenders.py": "the environment its child processes inherit",
    f"{MEASURING}/oml_costs.py": "how much memory its child process takes",
    "nanoloom/cli/terminal.py": "whether the user says how wide it is",
    "nanoloom/cli/failures.py": "the variables for debugging and for the cache's place",
}

# (lines of a file, lines of a function)
BUDGET, TEST_BUDGET = (300, 50), (400, 60)
# MLIR's `ext` reads the types of a class's fields when the class is made.
EVALUATED_ANNOTATIONS = {"nanoloom/vector/dialect.py"}

VAGUE = re.compile(r"(^|_)(utils?|helpers?|misc|common|old|new)(_|$)")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:root|home|work|Users|tmp|opt)/\w")
POSTPONED = re.compile(r"\b(TODO|FIXME|xfail|skipif|importorskip)\b|pytest\.skip\b")


def refuse(wrong: list[str]) -> None:
    """Fail with every place that is wrong."""
    assert not wrong, "\n" + "\n".join(wrong)


# ---- imports


def test_every_part_has_a_place_in_the_order() -> None:
    assert {s.layer for s in python("nanoloom")} - {""} == set(ORDER)


def against_the_order(source: Source) -> list[str]:
    if not source.layer:
        return []
    allowed = ORDER[: ORDER.index(source.layer) + 1]
    return [
        f"{source.path}:{line} imports nanoloom.{layer}"
        for line, layer in source.layers()
        if layer not in allowed
    ]


def test_imports_point_one_way() -> None:
    refuse([wrong for s in python("nanoloom") for wrong in against_the_order(s)])


def test_an_import_against_the_order_is_seen() -> None:
    text = "def f():\n    from nanoloom.cli import main\n"
    assert against_the_order(Source("nanoloom/graph/stage.py", text))


def importers(module: str) -> set[str]:
    """The files of the package that import `module`."""
    names = {
        s.path: {n.split(".")[0] for _, n in s.imports} for s in python("nanoloom")
    }
    return {path for path, imported in names.items() if module in imported}


def test_one_file_is_the_door_to_mlir() -> None:
    assert importers("torch_mlir") == {"nanoloom/ir/mlir.py"}


@pytest.mark.parametrize(
    ("peer", "folders"),
    [
        (
            "onnxruntime",
            ("nanoloom/inspect/", "nanoloom/quantization/", "nanoloom/cli/"),
        ),
        ("openvino", ("nanoloom/inspect/", "nanoloom/cli/")),
        (
            "torch",
            (
                "nanoloom/frontend/torch/",
                "nanoloom/torch/",
                "nanoloom/inspect/",
                "nanoloom/cli/",
            ),
        ),
        ("onnxscript", ("nanoloom/frontend/torch/",)),
        ("pyarrow", ("nanoloom/scoring/", "nanoloom/spark.py")),
        ("ray", ("nanoloom/ray.py",)),
        ("distributed", ("nanoloom/dask.py",)),
        ("pyspark", ("nanoloom/spark.py",)),
    ],
)
def test_only_these_folders_know_others(peer: str, folders: tuple[str, ...]) -> None:
    refuse([path for path in importers(peer) if not path.startswith(folders)])


@pytest.mark.parametrize("outside", ["tests", "benchmarks", "nanoloom_papers"])
def test_the_package_needs_nothing_around_it(outside: str) -> None:
    assert not importers(outside)


def test_papers_stand_on_the_package_and_import_one_way() -> None:
    """Strategies know no measurement, and no measurement the command."""
    below = {"affine": ("reproduce", "cli"), "reproduce": ("cli",), "cli": ()}
    wrong: list[str] = []
    for s in python("papers"):
        part = s.path.removeprefix("papers/nanoloom_papers/").split("/")[0]
        banned = tuple(f"nanoloom_papers.{x}." for x in below.get(part, ()))
        wrong += [
            f"{s.path}:{n} {m}" for n, m in s.imports if f"{m}.".startswith(banned)
        ]
    refuse(wrong)
    folders = {Path(s.path).parts[2] for s in python("papers")}
    assert folders - {"__init__.py"} == set(below)


def test_no_relative_and_no_star_imports() -> None:
    refuse(
        [
            f"{s.path}:{node.lineno}"
            for s in python()
            for node in s.nodes
            if isinstance(node, ast.ImportFrom)
            and (node.level or any(name.name == "*" for name in node.names))
        ]
    )


# ---- what files hold


def test_only_these_files_ask_the_machine() -> None:
    asking = {s.path: s.questions() for s in (*python("nanoloom"), *python("papers"))}
    assert {path for path, found in asking.items() if found} == set(MAY_ASK), asking


def test_a_question_to_the_machine_is_seen() -> None:
    text = "'''/proc/x'''\nn = os.environ['A']\nm = open('/proc/cpuinfo')\n"
    assert Source("nanoloom/x.py", text).questions() == [2, 3]


def test_names_say_what_a_file_is_about() -> None:
    refuse([s.path for s in python() if VAGUE.search(Path(s.path).stem)])


def budget(source: Source) -> tuple[int, int]:
    """The most lines of the file, and of a function in it."""
    return TEST_BUDGET if source.path.startswith("tests/") else BUDGET


def test_files_are_short() -> None:
    refuse([f"{s.path}: {s.lines}" for s in python() if s.lines > budget(s)[0]])


def test_functions_are_short() -> None:
    refuse(
        [
            f"{s.path}:{line} {name}: {length} lines"
            for s in python()
            for name, line, length in s.functions()
            if length > budget(s)[1]
        ]
    )


def test_every_file_says_what_it_is() -> None:
    silent = [s for s in python() if s.module.body and not ast.get_docstring(s.module)]
    refuse([s.path for s in silent])


def test_annotations_are_not_evaluated() -> None:
    annotating = (ast.FunctionDef, ast.ClassDef, ast.AnnAssign)
    evaluating = {
        s.path
        for s in python()
        if any(isinstance(node, annotating) for node in s.nodes)
        and "__future__.annotations" not in dict(s.imports).values()
    }
    assert evaluating == EVALUATED_ANNOTATIONS


def test_nothing_is_postponed_or_skipped() -> None:
    refuse(
        [
            f"{s.path}:{number}: {line.strip()}"
            for s in python()
            if s.path != relative(Path(__file__))
            for number, line in lines(s.text)
            if POSTPONED.search(line)
        ]
    )


def test_no_path_of_one_machine() -> None:
    refuse(
        [
            f"{relative(path)}:{number}: {line.strip()}"
            for path in files()
            for number, line in lines(path.read_text("utf-8"))
            if MACHINE_PATH.search(line)
        ]
    )


def test_a_path_of_one_machine_is_seen() -> None:
    assert MACHINE_PATH.search("see /" + "home/me/model.onnx")
    assert not MACHINE_PATH.search("root/tmp/drafts and /proc/cpuinfo")


# ---- the project around the package


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_lock_has_what_the_project_asks_for() -> None:
    locked = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in locked]
    versions = {canonicalize_name(name): version for name, version in pairs}
    facts = project()
    extras = facts["optional-dependencies"]
    assert isinstance(extras, dict)
    chosen = [
        text
        for extra in ("peers", "quantize", "score", "demo", "dev", "check")
        for text in extras[extra]
    ]
    for text in (*facts["dependencies"], *chosen):
        requirement = Requirement(text)
        if requirement.name != "nanoloom":
            version = versions.get(canonicalize_name(requirement.name), "")
            assert requirement.specifier.contains(version), (text, version)


def test_what_no_check_installs_may_be_missing() -> None:
    """`make check` installs no peers of `make bench`, which pyright would look for.

    typings/ has stubs of some, in which everything is Any.
    """
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    absent = {Requirement(x).name for x in extras["bench"]}
    absent -= {Requirement(x).name for e in ("dev", "demo") for x in extras[e]}
    absent -= {folder.name for folder in (ROOT / "typings").iterdir()}
    wrong = [
        f"{s.path}:{line} imports {module} without an ignore comment"
        for s in (*python("nanoloom"), *python("papers"))
        for line, module in s.imports
        if module.split(".")[0] in absent - {"nanoloom"}
        and "pyright: ignore" not in s.text.splitlines()[line - 1]
    ]
    refuse(wrong)


def test_the_examples_of_one_test_run_some() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    found = re.findall(r"(tests/\S+\.py) -k (\w+)", page)
    assert len(found) == 2
    for path, word in found:
        text = (ROOT / path).read_text("utf-8")
        assert re.search(rf"^def test_\w*{word}", text, re.MULTILINE), (path, word)


def test_the_version_is_one() -> None:
    version = project()["version"]
    text = (ROOT / "nanoloom/__init__.py").read_text("utf-8")
    assert f'__version__ = "{version}"' in text
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    assert extras["papers"] == [f"nanoloom-papers=={version}"]
    beside = tomllib.loads((ROOT / "papers/pyproject.toml").read_text("utf-8"))[
        "project"
    ]
    assert beside["version"] == version
    assert beside["dependencies"] == [f"nanoloom=={version}"]


@pytest.mark.parametrize(
    "target",
    [
        "help",
        "demo",
        "test",
        "torch",
        "engines",
        "browser",
        "fuzz",
        "mutants",
        "check",
        "bench",
        "lock",
    ],
)
def test_make_knows_the_target(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(rf"^{target}:.* ## ", makefile, re.MULTILINE)


def test_the_readme_names_both_commands_and_integration_runs_one() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    assert "make test" in (ROOT / ".ci/run").read_text("utf-8")


def test_the_layout_page_has_every_folder_in_order_and_no_other() -> None:
    page = (ROOT / "docs/layout.md").read_text("utf-8")
    named = set(re.findall(r"`(nanoloom/[\w/]+/)`", page))
    inside = [relative(path.parent) for path in files()]
    folders = {f"{f}/" for f in inside if f.startswith("nanoloom/")}
    assert named == folders
    headings = re.findall(r"^## `nanoloom/(\w+)(?:\.py|/)`", page, re.MULTILINE)
    assert headings == list(ORDER)
