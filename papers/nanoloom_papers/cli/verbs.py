"""The verbs that this package adds to the command."""

from __future__ import annotations

from nanoloom.cli.plugins import Verb
from nanoloom_papers.cli import analyze, reproduce

ANALYZE = Verb("analyze", analyze.analyze, analyze.EXAMPLE)
REPRODUCE = Verb("reproduce", reproduce.reproduce, reproduce.EXAMPLE)
