"""What outputs of sizes without a bound do not have room for."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.cache import Cache
from tests.binary.test_grown import Case, received, run_c, sent
from tests.dynamic.test_rooms import HEAD

FAR = Case(
    "far (int64 top) => (int64[n] y) <int64 zero = {0}, int64 one = {1}>"
    " { y = Range(zero, top, one) }",
    lambda _, most: {"top": np.array(most)},
    lambda feeds: [np.arange(int(feeds["top"]))],
)


@pytest.fixture
def less_memory() -> Iterator[None]:
    """Less than 2**37 numbers take, whatever this machine says yes to."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 38, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("less_memory")
def test_a_size_beyond_reason(tmp_path: Path, linking: Cache) -> None:
    """What one call wanted too much of is not kept for the next."""
    program = nanoloom.compile(FAR.model, cache=linking)
    # More than a program and a process have.
    tops = (5, 1 << 61, 100, 1 << 37, -3, (1 << 63) - 1)
    calls = [FAR.feeds(np.random.default_rng(0), n) for n in tops]
    said = "node Range_0: the data want 2305843009213693952 elements"
    stream = run_c(tmp_path, program, "shared", sent(FAR, calls))
    found = [received(stream, [np.dtype(np.int64)]) for _ in calls]
    lengths = [x if isinstance(x, str) else len(x[0]) for x in found]
    most = said.replace("2305843009213693952", "4611686018427387904")
    assert lengths == [5, said, 100, "there is no memory for these sizes", 0, most]
    with nanoloom.load(tmp_path / "model.so") as model:
        with pytest.raises(nanoloom.InputError, match="data want 2305843009213693952"):
            model(calls[1])
        with pytest.raises(nanoloom.Error, match="Unable to allocate"):
            model(calls[3])
        assert len(model(calls[2])["y"]) == 100
    path = program.save(tmp_path / "far", form="executable")
    np.save(tmp_path / "top.npy", calls[1]["top"])
    words = [str(path), str(tmp_path / "top.npy")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"far: {said}\n")


def test_a_session_has_no_memory_that_grows(tmp_path: Path, linking: Cache) -> None:
    """Of the rows that only a run knows: it keeps those of its tokens."""
    text = """far (float[past, 2] past_key, float[new, 2] x, int64 top)
        => (float[all, 2] present_key, int64[n] y) <int64 zero = {0}, int64 one = {1}>
    {
        present_key = Concat<axis = 0>(past_key, x)  y = Range(zero, top, one)
    }"""
    model = onnx.parser.parse_model(f"{HEAD}\n{text}")
    program = nanoloom.compile(model, cache=linking)
    with pytest.raises(
        nanoloom.Error, match=r"node Range_1 \(Range\): .* has no bound"
    ):
        program.save(tmp_path / "far.so", session={"past_key": "present_key"})
    assert not (tmp_path / "far.so").exists()


def test_a_bare_object_has_no_memory_that_grows(tmp_path: Path, linking: Cache) -> None:
    program = nanoloom.compile(FAR.model, cache=linking)
    with pytest.raises(nanoloom.Unsupported) as refusal:
        program.save(tmp_path / "far.o", form="bare")
    assert str(refusal.value) == (
        "node Range_0: the data decide about a size that has no bound, and a bare "
        "object has no memory that grows with it; compile an executable or a library, "
        "or give it a bound, as with Min"
    )
    assert not (tmp_path / "far.o").exists()
