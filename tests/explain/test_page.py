"""The page of a report, as text: tests/browser looks at it in a browser."""

from __future__ import annotations

import re
from dataclasses import replace

from nanoloom.explain.page import page
from tests.explain.reports import EVIL, PRODUCT, REPORT


def test_every_link_leads_somewhere_and_the_slowest_is_first() -> None:
    text = page(REPORT)
    ids = re.findall(r'id="(\w+)"', text)
    assert len(ids) == len({*ids})
    assert {*re.findall(r'href="#(\w+)"', text)} <= {*ids}
    assert not re.search(r'(?:src|href)="(?!#)', text), "nothing comes from elsewhere"
    assert text.index("elementwise_f64") < text.index("contraction_f32")


def test_names_are_escaped() -> None:
    text = page(replace(REPORT, kernels=(replace(PRODUCT, layers=(EVIL,)),), nodes=()))
    assert EVIL not in text and "&lt;img" in text


def test_what_was_not_measured_is_empty() -> None:
    kernel = replace(PRODUCT, measured=None, low=None, high=None, predicted=None)
    text = page(replace(REPORT, kernels=(kernel,), measured=None, nodes=()))
    assert "<svg" not in text and "None" not in text
    assert "not measured" in text
