"""The words that benchmarks understand."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from nanoloom_papers.reproduce.timing import Pace


def parser_of(name: str, text: str | None) -> argparse.ArgumentParser:
    """A benchmark's parser, without words.  text: its module's docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_race(
    parser: argparse.ArgumentParser, peers: Sequence[str], threads: str
) -> None:
    """The words of those that run beside peers, in turns."""
    parser.add_argument("--threads", default=threads, help="by commas")
    parser.add_argument("--against", default=",".join(peers), help="by commas")
    parser.add_argument("--rounds", type=int, default=Pace.rounds)
    parser.add_argument("--quick", action="store_true", help="tiny: does it work?")
    parser.add_argument("--json", type=Path, metavar="FILE")
