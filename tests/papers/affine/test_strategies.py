"""Strategies as values: what they are called, and what keys of a cache see of them."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from nanoloom.cache import key
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.workers.jobs import MakeKernel
from nanoloom_papers.affine.strategies import (
    NAMES,
    LoopStrategy,
    Unrolling,
    strategy_named,
)

TARGET = by_name("x86-64-v3")


def test_names_give_values() -> None:
    assert [LoopStrategy(name) for name in NAMES] == [strategy_named(x) for x in NAMES]
    assert strategy_named("default") is None
    with pytest.raises(ValueError):
        strategy_named("fast")


def test_workers_can_be_sent_one() -> None:
    sent = LoopStrategy("oml", Unrolling(vlen=8))
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_keys_hold_the_name_the_factors_and_the_code() -> None:
    """Another version of the package must not be given the kernels of this one."""
    one = LoopStrategy("affine")
    others = (
        None,
        LoopStrategy("plain"),
        LoopStrategy("affine", Unrolling(vlen=8)),
        replace(one, source="another version"),
    )
    kernels = [MakeKernel("k", "", "", False, TARGET, x) for x in (one, *others)]
    assert len({kernel.entry for kernel in kernels}) == len(kernels)
    options = [CompileOptions(TARGET, strategy=x) for x in (one, *others)]
    assert len({key(x) for x in options}) == len(options)
    assert key(options[0]) == key(CompileOptions(TARGET, strategy=replace(one)))
