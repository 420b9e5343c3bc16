"""Heads that share keys, a cache, and rotations, beside ONNX Runtime and in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from nanoloom.errors import Unsupported
from tests.frontend.microsoft.single import both, check, floats, model_of, of, run

Array = np.ndarray
HEADS, GROUPS, SIZE, PAST, STEPS = 4, 2, 16, 6, 800


def rotated(x: Array, places: Array, cosines: Array, sines: Array, mixed: int) -> Array:
    """Of [batch, heads, length, size]; what the tables do not reach stays."""
    width = 2 * cosines.shape[-1]
    turned, rest = x[..., :width].astype(np.float64), x[..., width:]
    cos, sin = (t.astype(np.float64)[places][:, None] for t in (cosines, sines))
    one = turned[..., ::2] if mixed else turned[..., : width // 2]
    other = turned[..., 1::2] if mixed else turned[..., width // 2 :]
    parts = [cos * one - sin * other, cos * other + sin * one]
    made = (
        np.stack(parts, -1).reshape(turned.shape)
        if mixed
        else np.concatenate(parts, -1)
    )
    return np.concatenate([made, rest], -1)


@pytest.mark.drawn
@pytest.mark.parametrize("mixed", [0, 1])
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("form", ["first", "all"])
@pytest.mark.parametrize("part", [False, True])
def test_rotary(mixed: int, split: bool, form: str, part: bool) -> None:
    random = np.random.default_rng(3)
    x = floats(random, 2, 3, 5, 8) if split else floats(random, 2, 5, 24)
    width = 2 if part else 4
    tables = [floats(random, 20, width), floats(random, 20, width)]
    every = (
        random.integers(0, 20, (2, 5))
        if form == "all"
        else np.tile(3 + np.arange(5), (2, 1))
    )
    places = every if form == "all" else np.array([3])
    extra = {"num_heads": 3, "rotary_embedding_dim": 4} if part else {}
    if split and part:
        extra["num_heads"] = 3
    ours, theirs = both(
        "RotaryEmbedding", [x, places, *tables], interleaved=mixed, opset=14, **extra
    )
    heads = x if split else x.reshape(2, 5, 3, 8).transpose(0, 2, 1, 3)
    exact = rotated(heads, every, *tables, mixed)
    exact = exact if split else exact.transpose(0, 2, 1, 3).reshape(x.shape)
    check((ours[0], theirs[0]), exact, 8, 32)


def attended(
    q: Array, k: Array, v: Array, before: list[int], *, window: int = -1,
    softcap: float = 0, sink: Array | None = None, added: Array | float = 0,
) -> Array:  # fmt: skip
    """q: [batch, heads, new, size]; k, v: [batch, groups, cache, size]."""
    k, v = (np.repeat(x.astype(np.float64), HEADS // GROUPS, 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(SIZE)
    scores = softcap * np.tanh(scores / softcap) if softcap else scores
    own = np.array(before)[:, None, None] + np.arange(q.shape[2])[:, None]
    place = np.arange(k.shape[2])
    seen = (place <= own) & ((place > own - window) if window > 0 else True)
    scores = np.where(seen[:, None], scores + added, -np.inf)
    weights = np.exp(scores)
    rest = 0 if sink is None else np.exp(sink.astype(np.float64))[:, None, None]
    made = weights / (weights.sum(-1, keepdims=True) + rest) @ v
    return made.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1)


class Case:
    """New tokens of a batch, and a cache, with what ONNX Runtime takes."""

    def __init__(self, new: int, before: list[int], cache: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        batch, self.new, self.before, self.cache = len(before), new, before, cache
        self.query = floats(random, batch, new, HEADS * SIZE)
        self.key, self.value = (
            floats(random, batch, new, GROUPS * SIZE) for _ in range(2)
        )
        kept = [floats(random, batch, GROUPS, cache, SIZE) for _ in range(2)]
        self.past = kept if cache else [None, None]
        self.tables = [floats(random, 20, SIZE // 2) for _ in range(2)]
        self.random = random

    def inputs(self, *rest: Array | None) -> list[Array | None]:
        total = np.array([n + self.new for n in self.before], np.int32)
        sizes = [total - 1, np.array(total.max(), np.int32)]
        return [self.query, self.key, self.value, *self.past, *sizes, *rest]

    def split(self, x: Array) -> Array:
        wide = x.reshape(*x.shape[:2], -1, SIZE)
        return wide.transpose(0, 2, 1, 3).astype(np.float64)

    def caches(self, rotate: Any = None) -> list[Array]:
        """Of keys and values, as long as the longest row needs them."""
        made: list[Array] = []
        for x, past in zip((self.key, self.value), self.past, strict=True):
            new = self.split(x)
            new = rotate(new) if rotate is not None and x is self.key else new
            rows = np.zeros(
                (len(self.before), GROUPS, max(self.before) + self.new, SIZE)
            )
            for r, count in enumerate(self.before):
                rows[r, :, :count] = 0 if past is None else past[r, :, :count]
                rows[r, :, count : count + self.new] = new[r]
            made.append(rows)
        return made


CASES = {
    "first": (5, [0, 0], 0),
    "next": (1, [PAST, PAST], PAST),
    "uneven": (1, [PAST, 4], PAST),
    "several": (3, [PAST], PAST),
}


@pytest.mark.drawn
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rotates", [None, 0, 1])
@pytest.mark.parametrize("shared", [False, True])
def test_cache(name: str, rotates: int | None, shared: bool) -> None:
    new, before, cache = CASES[name]
    case = Case(new, before, cache + 3 if shared and cache else cache, 5)
    extra = {} if rotates is None else {"do_rotary": 1, "rotary_interleaved": rotates}
    model, feeds = model_of(
        "GroupQueryAttention", case.inputs(*(case.tables if extra else ())),
        {"num_heads": HEADS, "kv_num_heads": GROUPS, **extra}, outputs=(True,) * 3,
    )  # fmt: skip
    if shared and cache:
        for index in (1, 2):
            shape = feeds["x3"].shape
            model.graph.output[index].CopyFrom(
                helper.make_tensor_value_info(f"y{index}", 1, shape)
            )
    ours, theirs = of(model, feeds)
    places = np.array(before)[:, None] + np.arange(new)

    def rotate(x: Array) -> Array:
        return rotated(x, places, *case.tables, rotates or 0)

    keys, values = case.caches(rotate if extra else None)
    queries = case.split(case.query)
    queries = rotate(queries) if extra else queries
    exact = attended(queries, keys, values, before)
    check((ours[0], theirs[0]), exact, STEPS, 32)
    for index, wanted in ((1, keys), (2, values)):
        assert ours[index].shape == theirs[index].shape
        for row, count in enumerate(before):
            end = count + new
            pair = ours[index][row, :, :end], theirs[index][row, :, :end]
            check(pair, wanted[row, :, :end], 8, 32)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["first", "several"])
@pytest.mark.parametrize(
    "kind", ["window", "softcap", "smooth", "sink", "bias", "packed", "both ways"]
)
def test_variants(name: str, kind: str) -> None:
    new, before, cache = CASES[name]
    case = Case(new, before, cache, 6)
    attributes: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": GROUPS}
    given, options = case.inputs(), dict[str, Any]()
    total = max(before) + new
    if kind == "window":
        attributes["local_window_size"] = options["window"] = 3
    elif kind == "softcap":
        attributes["softcap"] = options["softcap"] = 2.0
    elif kind == "smooth":
        attributes["smooth_softmax"], options["sink"] = 1, np.zeros(HEADS, np.float32)
    elif kind == "sink":
        options["sink"] = floats(case.random, HEADS)
        given = case.inputs(None, None, None, None, options["sink"])
    elif kind == "bias":
        options["added"] = floats(case.random, 1, HEADS, new, total)
        given = case.inputs(None, None, None, options["added"])
    elif kind == "packed":
        whole = np.concatenate([case.query, case.key, case.value], -1)
        given = [whole, None, None, *case.inputs()[3:]]
    else:
        attributes["causal"] = 0
    ours, theirs = both("GroupQueryAttention", given, outputs=(True,) * 3, **attributes)
    keys, values = case.caches()
    ahead = [n + new for n in before] if kind == "both ways" else before
    exact = attended(case.split(case.query), keys, values, ahead, **options)
    check((ours[0], theirs[0]), exact, STEPS, 8)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"kv_num_heads": 3}, "its 4 heads do not share 3 of keys evenly"),
        ({"k_quant_type": "PER_TENSOR"}, "its attribute k_quant_type = PER_TENSOR"),
        ({"sliding_window_cache": 1}, "its attribute sliding_window_cache = 1"),
    ],
)
def test_refusals(attributes: dict[str, Any], reason: str) -> None:
    case = Case(5, [0, 0], 0, 7)
    given = {"num_heads": HEADS, "kv_num_heads": GROUPS, **attributes}
    with pytest.raises(Unsupported, match=reason):
        run("GroupQueryAttention", case.inputs(), outputs=(True,) * 3, **given)
