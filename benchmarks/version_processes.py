"""Two versions of this code, each with its own modules in processes of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.results import ROOT
from benchmarks.systems import Task, job_of
from nanoloom.errors import Error
from nanoloom.target.host import host
from nanoloom_papers.reproduce.contenders import NANOLOOM, Remote
from nanoloom_papers.reproduce.timing import Pace

ITS_TARGET = """
import json
from nanoloom.target.cached_host import to_dict
from nanoloom.target.host import host
print(json.dumps(to_dict(host())))
"""


class Version:
    """A tree's own code in a process of its own.  folder: of its arrays and cache."""

    def __init__(self, tree: Path, threads: int, folder: Path) -> None:
        roots = f"{tree}{os.pathsep}{tree / 'papers'}"
        self._folder = folder
        folder.mkdir()
        words = {"PYTHONPATH": roots, "PYTHONSAFEPATH": "1"}  # not the folder here
        done = subprocess.run(
            [sys.executable, "-c", ITS_TARGET],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | words,
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["it does not run"]
            raise Error(lines[-1], where=str(tree))
        self._target = json.loads(done.stdout)
        self.remote = Remote(NANOLOOM, threads, folder, words)

    def open(self, task: Task, threads: int) -> float:
        """Seconds to compile.  Raises Error for what it does not compile."""
        cache = self._folder / "cache"
        job = job_of(task, threads, self._folder, host(), cache)
        self.remote.open(replace(job, facts={**job.facts, "target": self._target}))
        return self.remote.facts["seconds"]

    def burst(self, calls: int, pace: Pace) -> float:
        """Median seconds of so many calls behind a pause."""
        time.sleep(pace.pause)
        return statistics.median(self.remote.time(calls, 1))


class Pair:
    """Processes of both versions.  tree: of the commit; folder: of their files."""

    def __init__(self, tree: Path, threads: int, folder: Path) -> None:
        self._tree, self.threads, self._folder = tree, threads, folder
        self._started = 0
        self.start()

    def start(self) -> None:
        """New processes, which have nothing cached."""
        folder = self._folder / f"pair{self._started}"
        folder.mkdir()
        self.before = Version(self._tree, self.threads, folder / "before")
        self.after = Version(ROOT, self.threads, folder / "after")
        self._started += 1

    def close(self) -> None:
        self.before.remote.close()
        self.after.remote.close()
