"""What tests have in common is made once in a process of them.

Most have a cache of their own, and are about what comes behind it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from nanoloom.binary import executable, link, stand_ins
from nanoloom.binary.elf import Machine
from nanoloom.binary.link import Source
from nanoloom.cache import Cache, key
from nanoloom.frontend.custom_operators import REGISTERED
from nanoloom.garbage import COLLECTED
from nanoloom.graph.custom_types import RULES
from nanoloom.linalg.operators import OPERATORS
from nanoloom.workers import pool
from nanoloom_papers.reproduce.contenders import Remote
from nanoloom_papers.reproduce.instruction_counts import build_plugin
from nanoloom_papers.reproduce.jobs import Job
from tests.c_libraries import lend, lend_runtime
from tests.drawn_cases import Asked, keep_drawn
from tests.kept_kernels import kernels_are_kept, kernels_are_made, made_elsewhere
from tests.short_measurements import measurements_are_short


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-cases", action="store_true", help="the cases that are not drawn, too"
    )


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if not config.getoption("--all-cases"):
        config.hook.pytest_deselected(items=keep_drawn(items))


def pytest_configure(config: pytest.Config) -> None:
    Asked.all_cases = config.getoption("--all-cases")
    # A machine that does other things as well is no fault of what is tested.
    settings.register_profile(
        "any load", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("any load")


def pytest_collection() -> None:
    gc.disable()  # all that is collected stays


def pytest_collection_finish() -> None:
    """Thousands of tests are no garbage: nobody looks for any among them.

    As seldom as in the command: looking every 700 objects is a tenth of Python's time.
    """
    gc.freeze()
    gc.set_threshold(COLLECTED)
    gc.enable()


@pytest.fixture(autouse=True)
def custom_operators_are_forgotten() -> Iterator[None]:
    """Those that a test or a page registers are no other test's."""
    yield
    for domain, name in list(REGISTERED):
        del REGISTERED[domain, name]
        RULES.pop((domain, name), None)
        OPERATORS.pop(f"{domain}.{name}", None)


@pytest.fixture(scope="session", autouse=True)
def compiled_c_is_kept(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Iterator[None]:
    """The runtime's few files are the same in all tests, and take a second for each
    machine; pytest-xdist's workers share them.  So are the stand-ins for the system's
    libraries; and the C library of executables, which takes half a minute."""
    base = tmp_path_factory.getbasetemp()
    kept = Cache((base if worker_id == "master" else base.parent) / "C")
    known: dict[Machine, list[bytes]] = {}
    objects: dict[tuple[Source | str, ...], bytes] = {}
    compiled, made_stubs = link._compiled, stand_ins.made_stand_ins
    c_library = executable.c_library

    def looked_up(
        sources: Sequence[Source], command: Sequence[str], scratch: Path, nice: int = 0
    ) -> list[bytes]:
        new = [x for x in sources if (x, *command) not in objects]
        names = [key("C of tests", source, command) for source in new]
        held = [kept.get(name) for name in names]
        missing = [x for x, code in zip(new, held, strict=True) if code is None]
        made = iter(compiled(missing, command, scratch, nice))
        for source, name, code in zip(new, names, held, strict=True):
            if code is None:
                kept.put(name, code := next(made))
            objects[source, *command] = code
        return [objects[source, *command] for source in sources]

    def stubs(machine: Machine, scratch: Path) -> list[bytes]:
        if machine not in known:
            known[machine] = made_stubs(machine, scratch)
        return known[machine]

    def lent(triple: str, cache: Cache) -> tuple[bytes, ...]:
        lend(triple.partition("-")[0], cache)
        return c_library(triple, cache)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "c_library", lent)
        patch.setattr(link, "_compiled", looked_up)
        patch.setattr(stand_ins, "made_stand_ins", stubs)
        yield


@pytest.fixture(scope="session", autouse=True)
def contenders_have_the_runtime() -> Iterator[None]:
    """Each is a process whose cache is new, and would take seconds to compile it."""
    opened = Remote.open

    def lent(remote: Remote, job: Job, function: str = "") -> None:
        if "cache" in job.facts:
            lend_runtime(Cache(Path(job.facts["cache"])))
        opened(remote, job, function)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Remote, "open", lent)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels_are_kept() -> Iterator[None]:
    """Most of the time of the tests would be compiling the same again."""
    with kernels_are_kept():
        yield


@pytest.fixture(autouse=True)
def compiled_anew(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where compiling or its time is tested; in this process where a part of it may be
    replaced."""
    marked = request.node.get_closest_marker("compiles_anew") is not None
    patched = "monkeypatch" in request.fixturenames
    elsewhere = kernels_are_kept(made_elsewhere) if patched else nullcontext()
    with kernels_are_made() if marked else elsewhere:
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_is_measured_for_seconds() -> Iterator[None]:
    with measurements_are_short():
        yield


@pytest.fixture(scope="session", autouse=True)
def workers_stay() -> Iterator[None]:
    """To begin takes a worker most of a second, and tests between may need none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "IDLE_SECONDS", 3600.0)
        yield


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the emulators, which counts instructions: compiled once."""
    return build_plugin(tmp_path_factory.mktemp("plugin"))
