"""FileCheck on strings: what LLVM's own tests do with their files."""

from __future__ import annotations

import io

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts


def problems(text: str, checks: str) -> str:
    """What FileCheck says of text that does not match; nothing if it does."""
    options = Options("checks")
    parser = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
    matcher = Matcher(options, FInput("text", text), parser)
    matcher.stderr = io.StringIO()
    status = matcher.run()
    return matcher.stderr.getvalue() if status else ""


def check_text(text: str, checks: str) -> None:
    """Assert that text matches lines like `CHECK-NOT: memref.alloc`."""
    found = problems(text, checks)
    assert not found, f"{found}\n{text}"
