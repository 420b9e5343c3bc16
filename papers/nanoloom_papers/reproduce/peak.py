"""The measured peak as a contender: it takes its turns like everybody else.

So a percentage of it compares medians of the same minute, on the same clock.
"""

from __future__ import annotations

from nanoloom.target.cached_host import from_dict
from nanoloom.target.peaks import steady
from nanoloom_papers.reproduce.jobs import Job, Ready


def open_peak(job: Job) -> Ready:
    """The loop of a unit.  facts, given: target, unit; answered: operations."""
    unit = job.facts["unit"]
    run, operations = steady(from_dict(dict(job.facts["target"])), unit, job.threads)
    return Ready(f"peak of {unit}", run, list, {"operations": operations})
