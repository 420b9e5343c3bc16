"""A peer in a process of its own: python -m nanoloom_papers.reproduce.worker

It reads one JSON object a line and answers each by another:

    {"do": "open", "function": "module:function", "job": {...}}  {"name": "...", ...}
    {"do": "outputs", "path": "FILE.npz"}                        {"seconds": ...}
    {"do": "time", "calls": 5, "warm_ups": 1}                    {"seconds": [...]}
    {"do": "steps"}                                              {"steps": [...]}

An answer {"error": "..."} says in a sentence why not.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import IO, Any

from nanoloom.errors import Error
from nanoloom_papers.reproduce import array_files
from nanoloom_papers.reproduce.jobs import Job, Ready, open_job


class Worker:
    """The peer that is open, if any."""

    def __init__(self) -> None:
        self.ready: Ready | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "open":
                self.ready = None
                gc.collect()  # the model before may be as large as the memory
                self.ready = open_job(request["function"], Job(**request["job"]))
                return {"name": self.ready.name, "facts": dict(self.ready.facts)}
            case "outputs":
                assert self.ready is not None
                started = time.perf_counter()
                outputs = self.ready.outputs()
                seconds = time.perf_counter() - started
                named = {str(index): array for index, array in enumerate(outputs)}
                array_files.save(Path(request["path"]), named)
                return {"seconds": seconds}
            case "steps":
                assert self.ready is not None
                return {"steps": self.ready.steps()}
            case _:
                assert self.ready is not None
                calls, warm_ups = request["calls"], request["warm_ups"]
                return {"seconds": timed(self.ready.run, calls, warm_ups)}


def timed(run: Any, calls: int, warm_ups: int) -> list[float]:
    """Seconds of each of some calls, one behind the other."""
    for _ in range(warm_ups):
        run()
    seconds: list[float] = []
    for _ in range(calls):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return seconds


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Answer until the other side closes."""
    worker = Worker()
    for line in requests:
        request = json.loads(line)
        try:
            made = worker.answer(request)
        except Error as error:
            made = {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - peers raise classes of their own
            told = " ".join(str(error).split())[:200] or type(error).__name__
            made = {"error": f"it does not run this: {told}"}
        answers.write(json.dumps(made) + "\n")
        answers.flush()


def main() -> None:
    """Answers go to the real standard output, what libraries print to nowhere."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
