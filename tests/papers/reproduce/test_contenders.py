"""Contenders in their processes: what they answer, and what is said when they end."""

from __future__ import annotations

import json
import os
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom_papers.reproduce import array_files, contenders, worker
from nanoloom_papers.reproduce.array_files import BFLOAT16
from nanoloom_papers.reproduce.contenders import Company, Peer, Remote
from nanoloom_papers.reproduce.jobs import Job, Ready
from nanoloom_papers.reproduce.timing import QUICK, Pace, interleaved

HERE = "tests.papers.reproduce.test_contenders"
LOOPBACK = Peer("loopback", "Loopback", (), f"{HERE}:loopback")


def loopback(job: Job) -> Ready:
    """A peer that gives back its inputs, or ends its process."""
    if job.task == "crash":
        os.write(2, b"so it ends\n")
        os._exit(3)
    if job.task == "refuse":
        raise Error("takes no such job")
    if job.task == "fail":
        raise KeyError("a bug\nof its own")
    print("libraries print what they like")
    arrays = list(job.feeds.values())
    steps = [("one", 5), ("two", 7)]
    return Ready("Loopback 1", lambda: None, lambda: arrays, {"n": 1}, lambda: steps)


@pytest.fixture
def company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.setattr(contenders, "PEERS", (LOOPBACK,))
    with Company(("loopback",), tmp_path) as made:
        yield made


def job(folder: Path, task: str = "") -> Job:
    arrays = {"a": np.arange(6).reshape(2, 3), "b": np.ones(4).astype(BFLOAT16)}
    array_files.save(folder / "inputs.npz", arrays)
    return Job(1, inputs=str(folder / "inputs.npz"), task=task)


def test_a_peer_answers(company: Company, tmp_path: Path) -> None:
    remote = company.open("loopback", job(tmp_path))
    assert (remote.name, remote.facts) == ("Loopback 1", {"n": 1})
    one, other = remote.outputs()
    np.testing.assert_array_equal(one, np.arange(6).reshape(2, 3))
    assert other.dtype == BFLOAT16 and other.shape == (4,)
    assert len(remote.time(3, 1)) == 3
    assert remote.steps() == [("one", 5), ("two", 7)]
    assert company.open("loopback", job(tmp_path)) is remote


def test_what_goes_wrong_is_a_sentence(company: Company, tmp_path: Path) -> None:
    with pytest.raises(Error, match="Loopback: takes no such job"):
        company.open("loopback", job(tmp_path, "refuse"))
    with pytest.raises(Error, match="Loopback: it does not run this: 'a bug"):
        company.open("loopback", job(tmp_path, "fail"))
    with pytest.raises(Error, match="ended with status 3 and said: so it ends"):
        company.open("loopback", job(tmp_path, "crash"))
    assert company.open("loopback", job(tmp_path)).alive  # in a new process


def test_who_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        contenders,
        "PEERS",
        (
            Peer("none", "None", ("no_such_package",), ""),
            Peer("wide", "Wide", (), "", limited=False),
            LOOPBACK,
        ),
    )
    every = ("none", "wide", "loopback")
    with Company(every, tmp_path, avx2=True) as narrow:
        assert narrow.absent() == {
            "none": "None is not installed",
            "wide": "Wide cannot be kept to AVX2",
        }
    with Company(("wide", "loopback"), tmp_path) as wide:
        assert wide.absent() == {}


def test_a_peer_that_nobody_knows_is_no_peer(tmp_path: Path) -> None:
    with pytest.raises(Error, match="called OpenVINO; name some of: onednn"):
        Company(("openvino", "OpenVINO"), tmp_path)
    with Company(("",), tmp_path) as alone:
        assert alone.peers == ()


class Clocked(Remote):
    """One whose calls take the seconds that are given."""

    def __init__(self, key: str, seconds: float, log: list[str]) -> None:
        self.key, self.seconds, self.log = key, seconds, log

    def time(self, calls: int, warm_ups: int) -> list[float]:
        self.log.append(f"{self.key}{calls}+{warm_ups}")
        return [self.seconds] * calls


def test_turns() -> None:
    log: list[str] = []
    short, long = Clocked("s", 0.01, log), Clocked("l", 0.5, log)
    pace = Pace(rounds=2, pause=0, burst=0.03)
    one, other = interleaved([short, long], pace)
    firsts = ["s1+0", "l1+0", "s1+0", "l1+0"]
    assert log == [*firsts, "s3+1", "l1+0", "l1+0", "s3+1"]
    assert (len(one.seconds), len(other.seconds)) == (6, 2)
    assert (one.median, other.median) == (0.01, 0.5)


def test_a_slow_contender_has_fewer_turns() -> None:
    """Calls of 10 s in each of 7 rounds would keep everybody waiting."""
    log: list[str] = []
    slow, long = Clocked("s", 10.0, log), Clocked("l", 2.0, log)
    pace = Pace(rounds=7, pause=0, longest=5.0)
    one, other = interleaved([slow, long], pace)
    assert (len(one.seconds), len(other.seconds)) == (1, 2)
    assert log.count("s1+0") == 1
    slow.took = 9.0  # as its results were asked for: that was its call
    one, _ = interleaved([slow, long], pace)
    assert one.seconds == (9.0,) and log.count("s1+0") == 1


def test_the_quick_pace_calls_once() -> None:
    assert QUICK.calls(1e-9) == 1 and Pace().calls(0) == Pace().most


def test_the_worker_serves_until_the_end(tmp_path: Path) -> None:
    asked = {"function": f"{HERE}:loopback", "job": job(tmp_path).to_dict()}
    lines = [{"do": "open", **asked}, {"do": "time", "calls": 2, "warm_ups": 0}]
    answers = StringIO()
    worker.serve(StringIO("".join(json.dumps(x) + "\n" for x in lines)), answers)
    first, second = map(json.loads, answers.getvalue().splitlines())
    assert first["name"] == "Loopback 1" and len(second["seconds"]) == 2
