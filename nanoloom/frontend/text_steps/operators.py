"""What operators do that look into strings, and those that move what they made.

Each takes its attributes and arrays (of str in object arrays) and gives arrays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nanoloom.errors import InputError
from nanoloom.frontend.text_steps.hashes import murmur_hashes
from nanoloom.frontend.text_steps.ngram_counts import ngram_counts, pool_of
from nanoloom.frontend.text_steps.patterns import longest_matches, pattern_of

Array = np.ndarray[Any, np.dtype[Any]]
Attributes = Mapping[str, Any]
Operator = Callable[..., "list[Array]"]
START, END = "\x02", "\x03"  # marks of Tokenizer around each text


def each(function: Callable[[str], Any], x: Array, dtype: Any = object) -> Array:
    """The function of every string, in the same shape."""
    made = np.empty(x.size, dtype)
    made[:] = [function(text) for text in x.reshape(-1).tolist()]
    return made.reshape(x.shape)


def padded(rows: Sequence[Sequence[str]], shape: Sequence[int], pad: str) -> Array:
    """Lists of strings as an array with one more dimension, filled up with `pad`."""
    most = max(map(len, rows), default=0)
    made = np.full((len(rows), most), pad, object)
    for place, row in enumerate(rows):
        made[place, : len(row)] = row
    return made.reshape(*shape, most)


def normalize(a: Attributes, x: Array) -> list[Array]:
    """StringNormalizer: leaves words out, then changes the case of the others."""
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[
        a.get("case_change_action", "NONE")
    ]
    stopwords = a.get("stopwords") or ()
    if stopwords:
        seen = str if a.get("is_case_sensitive", 0) else str.lower
        left_out = {seen(word) for word in stopwords}
        kept = [text for text in x.reshape(-1).tolist() if seen(text) not in left_out]
        x = np.array(kept or [""], object).reshape(*x.shape[:-1], -1)
    return [each(change, x)]


def tokenize(a: Attributes, x: Array) -> list[Array]:
    """Tokenizer of ONNX Runtime: parts of each text along a new last dimension."""
    least, separators = a.get("mincharnum", 1), a.get("separators") or ()
    cut = parts_matched(a["tokenexp"]) if "tokenexp" in a else parts_between(separators)
    rows = [
        [token for token in cut(text) if len(token) >= least]
        for text in x.reshape(-1).tolist()
    ]
    if a.get("mark", 0) and any(rows):
        rows = [[START, *row, END] for row in rows]
    return [padded(rows, x.shape, a.get("pad_value", ""))]


def parts_matched(text: str) -> Callable[[str], list[str]]:
    pattern = pattern_of(text)
    return lambda given: [given[i:j] for i, j in longest_matches(pattern, given)]


def parts_between(separators: Sequence[str]) -> Callable[[str], list[str]]:
    """Each separator, a pattern, parts what those before it left; "" parts letters."""
    if list(separators) == [""]:
        return list
    patterns = [pattern_of(text) for text in separators]

    def cut(given: str) -> list[str]:
        tokens = [given]
        for pattern in patterns:
            tokens = [part for token in tokens for part in apart(pattern, token)]
        return tokens

    return cut


def apart(pattern: re.Pattern[str], text: str) -> list[str]:
    spans = list(longest_matches(pattern, text))
    begins = [0, *(end for _, end in spans)]
    ends = [*(begin for begin, _ in spans), len(text)]
    return [text[i:j] for i, j in zip(begins, ends, strict=True) if j > i]


def split(a: Attributes, x: Array) -> list[Array]:
    """StringSplit: parts along a new last dimension, and how many each text has."""
    delimiter, most = a.get("delimiter") or None, a.get("maxsplit", -1)
    rows = [text.split(delimiter, most) for text in x.reshape(-1).tolist()]
    counts = np.array([len(row) for row in rows], np.int64).reshape(x.shape)
    return [padded(rows, x.shape, ""), counts]


def concatenate(a: Attributes, x: Array, y: Array) -> list[Array]:
    """StringConcat."""
    del a
    return [np.asarray(x + y, object)]


def matches(a: Attributes, x: Array) -> list[Array]:
    """RegexFullMatch."""
    pattern = pattern_of(a["pattern"])
    return [each(lambda text: pattern.fullmatch(text) is not None, x, np.bool_)]


def hashed(a: Attributes, x: Array) -> list[Array]:
    """MurmurHash3 of ONNX Runtime: of the bytes of each text, as u32 or as i32."""
    texts = [text.encode() for text in x.reshape(-1).tolist()]
    made = murmur_hashes(texts, a.get("seed", 0)).reshape(x.shape)
    return [made if a.get("positive", 1) else made.view(np.int32)]


def count_grams(a: Attributes, x: Array) -> list[Array]:
    """TfIdfVectorizer on strings: how often each n-gram of the pool occurs."""
    order = a["ngram_indexes"]
    size = max(order) + 1
    pool = pool_of(tuple(a["pool_strings"]), tuple(a["ngram_counts"]), tuple(order))
    lengths = range(a["min_gram_length"], a["max_gram_length"] + 1)
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    counts = ngram_counts(pool, rows, lengths, a["max_skip_count"], size)
    weights = np.ones(size, np.float32)  # of places; the attribute has the pool's order
    if a.get("weights"):
        weights[order] = a["weights"]
    weighted = counts > 0 if a["mode"] == "IDF" else counts
    made = counts if a["mode"] == "TF" else weighted * weights
    return [made.astype(np.float32).reshape(*x.shape[:-1], size)]


def cast(a: Attributes, x: Array) -> list[Array]:
    """Strings as numbers.  Raises InputError for one that is none."""
    if a["dtype"] == "string":
        return [x]
    dtype = np.dtype(a["dtype"])
    read: Callable[[str], Any] = float if dtype.kind == "f" else int
    try:
        return [each(read, x).astype(dtype)]
    except ValueError as error:
        raise InputError(
            f"a string is no number: {error}",
            where="inputs",
            hint=f"give texts that can be read as {dtype.name}",
        ) from None


def reshape(a: Attributes, x: Array, shape: Array) -> list[Array]:
    zero = a.get("allowzero", 0)
    wanted = [
        x.shape[axis] if number == 0 and not zero else number
        for axis, number in enumerate(shape.tolist())
    ]
    return [x.reshape(wanted)]


def flatten(a: Attributes, x: Array) -> list[Array]:
    axis = a.get("axis", 1)
    rows = int(np.prod(x.shape[: axis if axis >= 0 else axis + x.ndim], dtype=int))
    return [x.reshape(rows, x.size // max(rows, 1))]


def identity(a: Attributes, x: Array) -> list[Array]:
    del a
    return [x]


LOOKING: Mapping[str, Operator] = {
    "Cast": cast, "MurmurHash3": hashed, "RegexFullMatch": matches,
    "StringConcat": concatenate,
    "StringNormalizer": normalize, "StringSplit": split, "Tokenizer": tokenize,
}  # fmt: skip
FOLLOWING: Mapping[str, Operator] = {
    "Flatten": flatten, "Identity": identity, "Reshape": reshape,
    "TfIdfVectorizer": count_grams,
}  # fmt: skip
OPERATORS: Mapping[str, Operator] = {**LOOKING, **FOLLOWING}
