"""The page of a report in Chromium: it renders, its links work, it asks nobody."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from nanoloom.explain.page import LayerTable, page
from tests.explain.reports import EVIL, REPORT

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
TABLE = LayerTable("2 layers", ("layer", "time"), (("MatMul_0", "1 ms"),))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=QUIET
        )
        yield made
        made.close()


class Seen:
    """A page that is open, and what it asked for and complained of."""

    def __init__(self, browser: Browser, path: Path) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page: Page = browser.new_page()
        self.page.on("request", lambda x: self.requests.append(x.url))
        self.page.on("pageerror", lambda x: self.errors.append(str(x)))
        self.page.on(
            "console",
            lambda x: self.errors.append(x.text) if x.type == "error" else None,
        )
        self.page.goto(path.as_uri())


@pytest.fixture
def seen(browser: Browser, tmp_path: Path) -> Iterator[Seen]:
    place = tmp_path / "report.html"
    place.write_text(page(REPORT, TABLE), "utf-8")
    made = Seen(browser, place)
    yield made
    assert not made.errors
    assert [url.partition("#")[0] for url in made.requests] == [place.as_uri()]
    made.page.close()


def test_it_renders(seen: Seen) -> None:
    assert REPORT.model in seen.page.inner_text("h1")
    for column in ("nodes", "loops", "assembly"):
        box = seen.page.locator(f"#{column}").bounding_box()
        assert box and box["width"] > 100 and box["height"] > 100
    assert seen.page.locator("svg rect").count() == len(REPORT.kernels)
    colour = "e => getComputedStyle(e).color"
    slow = seen.page.locator("#loops .slow").first
    assert slow.evaluate(colour) == "rgb(176, 0, 32)", "fallbacks are red"
    assert seen.page.inner_text("#layers td") == "MatMul_0"


def test_its_links_lead_from_nodes_to_loops_to_assembly(seen: Seen) -> None:
    for link in seen.page.locator("a").all():
        target = link.get_attribute("href")
        assert target and seen.page.locator(target).count() == 1, target
    seen.page.click("#nodes a:text-is('Exp_4')")
    chosen = seen.page.locator(".chosen")
    assert [each.get_attribute("id") for each in chosen.all()] == [None, "k0", "a0"]
    seen.page.click("#k0 a")
    assert seen.page.url.endswith("#a0")
    seen.page.click("#a0 h2 a")
    assert seen.page.url.endswith("#k0")


def test_names_of_models_are_text(browser: Browser, tmp_path: Path) -> None:
    """A name that is a script, or an image from elsewhere, is shown and not run."""
    place = tmp_path / "evil.html"
    (kernel, *others) = REPORT.kernels
    named = replace(kernel, layers=(EVIL,), assembly=EVIL, reason=EVIL)
    report = replace(REPORT, model=EVIL, kernels=(named, *others))
    place.write_text(page(report), "utf-8")
    found = Seen(browser, place)
    assert not found.errors
    assert found.page.evaluate("window.stolen") is None
    assert EVIL in found.page.inner_text("h1")
    assert [url.partition("#")[0] for url in found.requests] == [place.as_uri()]


def test_what_a_page_asks_for_is_seen(browser: Browser, tmp_path: Path) -> None:
    """The tests above would notice."""
    place = tmp_path / "asks.html"
    place.write_text('<img src="file:///none.png"><script>nothing()</script>')
    found = Seen(browser, place)
    assert len(found.requests) == 2 and found.errors
