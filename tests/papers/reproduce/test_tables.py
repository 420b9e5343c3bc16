"""Rows as tables, CSV, JSON and pictures; bounds."""

from __future__ import annotations

import csv
import io
import json

import pytest

from nanoloom.inspect.timing import Times
from nanoloom.target import by_name
from nanoloom.target.peaks import Peaks, Rate
from nanoloom_papers.reproduce import pictures, tables
from nanoloom_papers.reproduce.chains import Chain, gemm, mlp
from nanoloom_papers.reproduce.measurement import Row
from nanoloom_papers.reproduce.nanokernels import Plan
from nanoloom_papers.reproduce.roofline import Limits

TARGET = by_name("sapphirerapids")


def limits(threads: int) -> Limits:
    rates = [
        Rate(what, threads, best * threads, best)
        for what, best in (
            ("f32", 200.0), ("bf16-amx", 3000.0), ("bf16", 400.0), ("u8s8", 800.0),
            ("l2", 100.0), ("memory", 10.0),
        )
    ]  # fmt: skip
    return Limits(TARGET, threads, Peaks("t", threads, tuple(rates)), 30.0)


def row(chain: Chain, threads: int, seconds: dict[str, float]) -> Row:
    times = {key: Times((value,)) for key, value in seconds.items()}
    names = {key: f"{key} 1" for key in seconds}
    found = limits(threads)
    return Row(chain, found, times, names, {}, ("fma",), found.peak(chain.arithmetic))


def rows() -> list[Row]:
    chain = mlp(1024, "f32")
    unit = chain.flops / 1e9
    one = row(chain, 1, {"nanoloom": unit / 100, "onednn": unit / 200})
    two = row(chain, 2, {"nanoloom": unit / 360, "onednn": unit / 180})
    other = row(gemm(64, 64, 64, "bf16"), 1, {"nanoloom": 1.0})
    other.absent["openvino"] = "OpenVINO: wrong result"
    return [one, two, other]


def test_rates() -> None:
    one, two, other = rows()
    assert one.gflops("nanoloom") == pytest.approx(100)
    assert one.of_peak("nanoloom") == pytest.approx(50)
    assert two.of_peak("nanoloom") == pytest.approx(90)
    assert one.against("onednn") == pytest.approx(50)
    assert one.best_peer == "onednn" and other.best_peer is None
    assert one.gflops("openblas") is one.against("openblas") is None


def test_what_is_missing_is_said() -> None:
    one, _, other = rows()
    assert one.note == ""
    assert other.note == "no bf16 instructions for this product: multiply-adds in f32"
    other.families = ("loops",)
    assert other.note == "no bf16 nanokernel for this product: plain loops"
    other.families = ("amx",)
    assert other.note == ""
    del other.times["nanoloom"]
    other.absent["nanoloom"] = "no such luck"
    assert other.note == "no such luck"


def test_bounds() -> None:
    one = limits(1)
    assert one.peak("bf16") == 3000 and one.peak("int8") == 800
    assert one.bandwidth(2 << 20) == ("L2", 100.0)
    assert one.bandwidth(8 << 20) == ("L3", 30.0)
    assert one.bandwidth(1 << 30) == ("memory", 10.0)
    assert (one.unit("bf16"), one.unit("int8")) == ("bf16-amx", "u8s8")
    assert one.bound(200, 1e9, 1000) == 200  # arithmetic
    assert one.bound(200, 1e6, 1 << 30) == pytest.approx(10 * 1e6 / 2**30)


def test_comparison_is_a_geometric_mean() -> None:
    assert tables.comparison(rows())["mlp f32"]["onednn"] == {
        "512x1024": pytest.approx(100)
    }
    (sheet,) = tables.comparison_sheets(rows())
    assert sheet.rows == (("f32", "oneDNN", "100 %"),)


def test_sheets() -> None:
    first, second = tables.speeds(rows())
    heads = ("size", ">thr", ">nanoloom", ">oneDNN", ">%peak", ">%best")
    assert first.columns == heads
    assert first.rows[0] == ("512x1024", "1", "100", "200", "50", "50")
    assert "nanokernels: fma" in first.notes
    assert "200 with 1, 400 with 2 threads" in first.notes[0]
    assert second.rows[0][0] == "64^3"
    assert "not measured: OpenVINO: wrong result" in second.notes


def test_nanokernels_that_differ_are_told_by_size() -> None:
    one, two, _ = rows()
    two.families, two.chain = ("amx",), gemm(64, 64, 64, "f32")
    assert tables.instructions([one, two]) == [
        "nanokernels: fma (512x1024), amx (64^3)"
    ]
    assert tables.instructions([]) == []


def test_csv_and_json() -> None:
    found = list(csv.DictReader(io.StringIO(tables.as_csv(rows()))))
    assert len(found) == 6 and tuple(found[0]) == tables.FIELDS
    assert found[1]["nanoloom_percent"] == "50"
    assert found[-1]["contender"] == "openvino" and found[-1]["gflops"] == ""
    data = json.loads(json.dumps(tables.as_dict(rows(), "t"), allow_nan=False))
    assert len(data["results"]) == 6 and data["rates"][0]["level3"] == 30
    assert data["comparison"]["mlp f32"]["onednn"]["512x1024"] == pytest.approx(100)


def test_pictures() -> None:
    made = pictures.pictures(rows())
    assert set(made) == {"mlp.png", "mlp-threads.png", "gemm.png", "gemm-threads.png"}
    assert all(drawn.startswith(b"\x89PNG") for drawn in made.values())


def test_the_plan_is_the_papers() -> None:
    chains = Plan().chains()
    perceptrons = {c.widths for c in chains if c.kind == "mlp"}
    assert perceptrons == {(n,) * 4 for n in (1024, 2048, 4096)}
    assert {c.rows for c in chains if c.kind == "mlp"} == {512}
    assert len(chains) == 4 * (3 + 4)
    assert all(max(c.widths) < 100 for c in Plan(quick=True).chains())
