"""What measures for seconds measures once in tests: nobody reads how long it took."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

# Names of numbers of seconds and of repetitions, and the least that they can be.
SHORT = {
    "nanoloom.target.peaks.ONE_RUN": 0.001,
    "nanoloom.target.peaks.ROUNDS": 1,
    "nanoloom.explain.timed_steps.SECONDS": 0.0,
    "nanoloom.inspect.timing.BUDGET": 0.0,
    "nanoloom.quantization.layer_times.SECONDS": 0.0,
    "nanoloom_papers.reproduce.roofline.TURNS": 1,
    "nanoloom_papers.reproduce.roofline.ROUNDS": 1,
}


@contextmanager
def measurements_are_short() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, least in SHORT.items():
            patch.setattr(name, least)
        yield
