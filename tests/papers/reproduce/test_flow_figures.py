"""Figures 8 and 9: who is missing or wrong is named, the others have times."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from nanoloom.errors import Error
from nanoloom.target.host import host
from nanoloom_papers.reproduce import flow_figures, flow_peers
from nanoloom_papers.reproduce.contenders import Company, Peer
from nanoloom_papers.reproduce.flow_binary import BinaryLayer, binary, integers
from nanoloom_papers.reproduce.flow_figures import (
    FIELDS,
    Row,
    Subject,
    as_csv,
    as_dict,
    binary_gain,
    records,
    run,
    subjects,
)
from nanoloom_papers.reproduce.flow_networks import Network
from nanoloom_papers.reproduce.flow_peers import PLAIN
from nanoloom_papers.reproduce.jobs import Job
from nanoloom_papers.reproduce.yflows_pictures import network_pictures

SMALL = BinaryLayer(8, 5)
ABSENT = Peer("nobody", "Nobody", ("no_such_package_at_all",), "no:body")


def wrong() -> Network:
    network = binary(SMALL)
    return replace(network, value=network.value + 1)


def measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *chosen: Subject
) -> list[Row]:
    monkeypatch.setattr(flow_figures, "subjects", lambda quick: list(chosen))
    peers = (PLAIN, ABSENT)
    keys = tuple(peer.key for peer in peers)
    with Company(keys, folder, known=peers) as company:
        say = partial(print, flush=True)
        return list(run(host(), company, folder, say, quick=True))


def test_who_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = Subject(9, "small", "binary", partial(binary, SMALL), (1, 2))
    one, two = measured(tmp_path, monkeypatch, layer)
    assert (one.threads, two.threads) == (1, 2)
    assert set(one.seconds) == {"nanoloom", "plain"} and min(one.seconds.values()) > 0
    assert one.absent["nobody"] == "Nobody is not installed"
    assert one.names["plain"].startswith("plain loops by nanoloom")
    assert not list(tmp_path.glob("network-*"))


def test_who_is_wrong_has_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = measured(tmp_path, monkeypatch, Subject(9, "small", "binary", wrong, (1,)))
    assert not row.seconds
    assert row.absent["nanoloom"].startswith("wrong result: 1e+02 %")
    assert row.absent["plain"].startswith("wrong result")


def test_another_python_runs_a_peer(tmp_path: Path) -> None:
    """It finds this package whatever is installed there."""
    place = tmp_path / "python"
    place.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    place.chmod(0o755)
    tvm = [peer for peer in flow_peers.peers(str(place)) if peer.key == "tvm"]
    assert tvm[0].installed and tvm[0].python == str(place)
    here = [peer for peer in flow_peers.peers() if peer.key == "tvm"]
    assert here[0].packages == ("tvm",) and here[0].python == ""
    lost = replace(tvm[0], function="nanoloom_papers.reproduce.flow_peers:no_such")
    with (
        Company(("tvm",), tmp_path, known=(lost,)) as company,
        pytest.raises(Error, match="no attribute 'no_such'"),
    ):
        company.open("tvm", Job(1))


def test_what_is_measured() -> None:
    every = subjects(quick=False)
    assert [x.figure for x in every] == [8] * 6 + [9] * 8
    assert {x.counts for x in every if x.figure == 8} == {(1, 2)}
    assert len(subjects(quick=True)) < len(every)


def row(element: str, ours: float, **others: float) -> Row:
    draw = partial(integers, SMALL)
    subject = Subject(9, "a layer", element, draw)
    return Row(subject, 1, {"nanoloom": ours, **others}, {"nanoloom": "nanoloom 1"})


def test_files() -> None:
    rows = [row("int8", 6.0, plain=30.0), row("binary", 1.5)]
    rows[1].absent["plain"] = "it does not run this"
    assert binary_gain(rows) == {"a layer": 4.0}
    first, second, third, last = records(rows)
    assert list(first) == list(FIELDS) and first["name"] == "nanoloom 1"
    assert (second["contender"], second["nanoloom_times"]) == ("plain", 5.0)
    assert third["median_seconds"] == 1.5
    assert (last["median_seconds"], last["note"]) == (None, "it does not run this")
    assert as_csv(rows).splitlines()[2] == "9,a layer,int8,1,plain,plain,30,5,"
    assert as_dict(rows)["binary_of_int8"] == {"a layer": 4.0}


def test_a_picture_of_each_figure() -> None:
    rows = [row("int8", 6.0, plain=30.0), row("binary", 1.5)]
    found = network_pictures(rows)
    assert list(found) == ["figure-9.png"]
    assert found["figure-9.png"].startswith(b"\x89PNG")
    assert network_pictures([]) == {}
