"""Regular expressions of ONNX's operators, which RE2 defines, as Python's."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What RE2 has and Python has not, or has with another meaning.
FOREIGN = re.compile(r"\[\[:|\\[pPQECz]|\(\?[<PU]*U")
AMBIGUOUS = re.compile(r"\||[*+?}]\?")  # the first match may not be the longest


class PatternError(ValueError):
    """A pattern that Python does not understand as RE2 does."""


def pattern_of(text: str) -> re.Pattern[str]:
    """Classes such as \\w are of ASCII alone.  Raises PatternError."""
    if FOREIGN.search(text):
        raise PatternError(f"its pattern {text!r} is one of RE2 alone")
    try:
        return re.compile(text, re.ASCII)
    except re.error as error:
        raise PatternError(f"its pattern {text!r} is none: {error}") from None


def longest_matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of the leftmost matches, each as long as can be; none is empty."""
    start, ambiguous = 0, AMBIGUOUS.search(pattern.pattern)
    while (found := pattern.search(text, start)) is not None:
        begin, end = found.span()
        if ambiguous:
            end = next(
                stop
                for stop in range(len(text), end - 1, -1)
                if stop == end or pattern.fullmatch(text, begin, stop)
            )
        if end > begin:
            yield begin, end
        start = max(end, begin + 1)
        if start > len(text):
            return
