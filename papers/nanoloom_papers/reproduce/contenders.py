"""Who is measured: nanoloom and its peers, each in a process of its own.

So each has its own thread pool and its own instruction set where that is limited, and
takes nobody with it when it crashes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import nanoloom
from nanoloom.errors import Error, InputError
from nanoloom_papers.reproduce import array_files
from nanoloom_papers.reproduce.array_files import Array
from nanoloom_papers.reproduce.jobs import Job

# What keeps the libraries to AVX2; those without such a word are left out then.
AVX2_ONLY = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}


@dataclass(frozen=True)
class Peer:
    """A system to compare with.  packages: all that it needs; function: its `open`.

    limited: whether AVX2_ONLY keeps it from wider vectors.  python: the interpreter of
    an environment of its own, "" for this one.
    """

    key: str
    name: str
    packages: tuple[str, ...]
    function: str
    limited: bool = True
    python: str = ""

    @property
    def installed(self) -> bool:
        """Whether this environment has all packages that it needs from here."""
        return all(importlib.util.find_spec(p) is not None for p in self.packages)


NANOLOOM = Peer(
    "nanoloom", "nanoloom", (), "nanoloom_papers.reproduce.nanoloom_peer:open_program"
)
PEAK = Peer("peak", "the peak", (), "nanoloom_papers.reproduce.peak:open_peak")
PEERS = (
    Peer(
        "onednn", "oneDNN", ("torch",), "nanoloom_papers.reproduce.chain_peers:onednn"
    ),
    Peer(
        "pytorch",
        "PyTorch",
        ("torch",),
        "nanoloom_papers.reproduce.chain_peers:pytorch",
    ),
    Peer(
        "openvino",
        "OpenVINO",
        ("openvino",),
        "nanoloom_papers.reproduce.peers:openvino",
        limited=False,  # its own copies of other libraries use what they find
    ),
    Peer(
        "openblas",
        "OpenBLAS",
        ("numpy",),
        "nanoloom_papers.reproduce.chain_peers:openblas",
    ),
    Peer(
        "onnxruntime",
        "ONNX Runtime",
        ("onnxruntime",),
        "nanoloom_papers.reproduce.peers:onnx_runtime",
        limited=False,
    ),
)
PEER_KEYS = tuple(peer.key for peer in PEERS)


class Remote:
    """The process of one.  It lives on when a task is done, for the next `open`.

    name: with the version; facts: what `open` said of the task.  took: seconds of the
    call that gave its outputs.
    """

    took = 0.0

    def __init__(
        self, peer: Peer, threads: int, folder: Path, limits: Mapping[str, str]
    ) -> None:
        self.peer = peer
        self.key, self.name = peer.key, peer.name
        self.facts: dict[str, Any] = {}
        self._folder = folder
        libraries = ("OPENBLAS", "OMP", "TVM")
        counts = {f"{name}_NUM_THREADS": str(threads) for name in libraries}
        if peer.python:
            roots = Path(nanoloom.__file__).parents[1], Path(__file__).parents[2]
            counts["PYTHONPATH"] = os.pathsep.join(map(str, roots))
        self._said = folder / f"said-{peer.key}-{threads}.txt"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [
                    peer.python or sys.executable,
                    "-m",
                    "nanoloom_papers.reproduce.worker",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                env={**os.environ, **counts, **limits},
            )

    def open(self, job: Job, function: str = "") -> None:
        """Load a task; raises Error, in a sentence, if the peer does not take it.

        function: another than the peer's own, "module:function".
        """
        asked = {"function": function or self.peer.function, "job": job.to_dict()}
        answer = self._ask("open", **asked)
        self.name, self.facts = answer["name"], answer["facts"]

    def outputs(self) -> list[Array]:
        """Run once; `took` is how many seconds that lasted."""
        path = self._folder / f"outputs-{self.key}.npz"
        self.took = self._ask("outputs", path=str(path))["seconds"]
        found = array_files.load(path)
        path.unlink()
        return [found[str(index)] for index in range(len(found))]

    def time(self, calls: int, warm_ups: int) -> list[float]:
        return self._ask("time", calls=calls, warm_ups=warm_ups)["seconds"]

    def steps(self) -> list[tuple[str, int]]:
        """Run once: the name and the nanoseconds of every part."""
        return [(name, time) for name, time in self._ask("steps")["steps"]]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            cast("IO[str]", pipe).close()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def _ask(self, do: str, **words: Any) -> dict[str, Any]:
        requests = cast("IO[str]", self._process.stdin)
        try:
            requests.write(json.dumps({"do": do, **words}) + "\n")
            requests.flush()
        except BrokenPipeError:
            raise self._crashed() from None
        line = cast("IO[str]", self._process.stdout).readline()
        if not line:
            raise self._crashed()
        answer = json.loads(line)
        if "error" in answer:
            raise Error(answer["error"], where=self.peer.name)
        return answer

    def _crashed(self) -> Error:
        status = self._process.wait()
        lines = self._said.read_text(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "nothing")
        reason = (
            f"its process ended with status {status} and said: {last.strip()[:200]}"
        )
        return Error(reason, where=self.peer.name)


class Company:
    """nanoloom and its peers, each started when it is first wanted.  Used in a `with`.

    keys: of the peers.  avx2: whether they are kept from vectors of 512 bits.  known:
    all peers that there are, PEERS for none.
    """

    def __init__(
        self,
        keys: tuple[str, ...],
        folder: Path,
        avx2: bool = False,
        known: tuple[Peer, ...] = (),
    ) -> None:
        require_known(keys, [peer.key for peer in (*(known or PEERS), NANOLOOM)])
        self.peers = tuple(peer for peer in known or PEERS if peer.key in keys)
        self._folder = folder
        self._avx2 = avx2
        self._open: dict[tuple[str, int], Remote] = {}

    def absent(self) -> dict[str, str]:
        """The peers that cannot be measured here at all, and why, by key."""
        found: dict[str, str] = {}
        for peer in self.peers:
            if not peer.installed:
                found[peer.key] = f"{peer.name} is not installed"
            elif self._avx2 and not peer.limited:
                found[peer.key] = f"{peer.name} cannot be kept to AVX2"
        return found

    def open(self, key: str, job: Job, function: str = "") -> Remote:
        """Who is asked for, with a task loaded; raises Error if it does not take it."""
        place = (key, job.threads)
        remote = self._open.get(place)
        if remote is None or not remote.alive:
            everybody = (NANOLOOM, PEAK, *self.peers)
            peer = next(peer for peer in everybody if peer.key == key)
            limits = AVX2_ONLY if self._avx2 else {}
            remote = Remote(peer, job.threads, self._folder, limits)
            self._open[place] = remote
        remote.open(job, function)
        return remote

    def __enter__(self) -> Company:
        return self

    def __exit__(self, *error: object) -> None:
        for remote in self._open.values():
            remote.close()
        self._open.clear()


def require_known(keys: Iterable[str], known: Sequence[str]) -> None:
    """Raise InputError for a peer that nobody knows; "" and "none" are nobody."""
    for key in keys:
        if key not in ("", "none", *known):
            hint = f"name some of: {', '.join(known)}"
            raise InputError(f"no peer is called {key}", hint=hint)
