"""Recurrences, control flow, random numbers, signals and words."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from tests.fuzz.oracle import Array, Rejected
from tests.fuzz.sketch import BOOL, F32, F64, FLOATS, I32, I64, Sketch
from tests.fuzz.words import Recipe, words

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent(s: Sketch, op: str) -> None:
    length, batch, width, hidden = (s.integer(1, 6), s.integer(1, 3), s.integer(1, 9),
                                    s.integer(1, 9))  # fmt: skip
    direction = s.pick([None, "forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    gates = GATES[op] * hidden

    def rows(*shape: int) -> str:
        return s.fresh(s.array((ways, *shape), F32, -1, 1), parameter=True)

    x = s.like((length, batch, width), F32)
    inputs = [x, rows(gates, width), rows(gates, hidden)]
    inputs.append(rows(2 * gates) if s.chance(0.6) else "")
    lengths = s.array((batch,), I32, 1, length)
    inputs.append(s.fresh(lengths) if s.chance(0.3) else "")
    inputs.append(rows(batch, hidden) if s.chance(0.4) else "")
    if op == "LSTM":
        inputs.append(rows(batch, hidden) if s.chance(0.4) else "")
        inputs.append(rows(3 * hidden) if s.chance(0.3) else "")
    outputs = [s.chance(0.8), True, *([s.chance(0.5)] if op == "LSTM" else [])]
    s.add(
        op,
        inputs,
        outputs,
        hidden_size=hidden,
        direction=direction,
        clip=s.pick([None, None, 0.5]),
        linear_before_reset=s.pick([None, 1]) if op == "GRU" else None,
    )


def typed(name: str, array: Array, rank: int | None = None) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, [None] * (array.ndim
                                         if rank is None else rank))  # fmt: skip


def choice(s: Sketch, op: str) -> None:
    """Two branches of one type and shape, which use what is around them."""
    x = s.operand([F32, I32])
    inner = len(s.steps)
    branches: dict[str, onnx.GraphProto] = {}
    for name, inside in (("then", s.pick(["Neg", "Abs"])), ("else", "Identity")):
        made = f"{name}_{inner}"
        branches[f"{name}_branch"] = helper.make_graph(
            [helper.make_node(inside, [x], [made])], name, [], [typed(made, s[x])]
        )
    condition = s.fresh(s.array((), BOOL), parameter=s.chance(0.3))
    s.add(op, [condition], **branches)


def loop(s: Sketch, op: str) -> None:
    """A running value and a row of what it was."""
    n = len(s.steps)
    x = s.operand([F32], range(3), lambda a: a.size < 300)
    before, after, row = f"before_{n}", f"after_{n}", f"row_{n}"
    go, on, count = f"go_{n}", f"on_{n}", f"count_{n}"
    body = helper.make_graph(
        [
            helper.make_node("Identity", [go], [on]),
            helper.make_node("Sin", [before], [after]),
            helper.make_node("Sub", [after, x], [row]),
        ],
        "body",
        [
            helper.make_tensor_value_info(count, TensorProto.INT64, []),
            helper.make_tensor_value_info(go, TensorProto.BOOL, []),
            typed(before, s[x]),
        ],
        [
            helper.make_tensor_value_info(on, TensorProto.BOOL, []),
            typed(after, s[x]),
            typed(row, s[x]),
        ],
    )
    times = s.scalar(s.integer(1, 5))  # of no turn, the rows' shape is open
    s.add(op, [times, s.scalar(1, BOOL), s.like(s[x].shape, F32)], 2, body=body)


def scan(s: Sketch, op: str) -> None:
    n = len(s.steps)
    x = s.operand([F32], range(1, 4), lambda a: 0 not in a.shape and len(a) < 9)
    state = s.like(s[x].shape[1:], F32)
    before, part, after, out = (f"{w}_{n}" for w in ("s", "part", "after", "out"))
    rank = s[x].ndim - 1
    body = helper.make_graph(
        [
            helper.make_node("Add", [before, part], [after]),
            helper.make_node("Tanh", [after], [out]),
        ],
        "body",
        [typed(before, s[x], rank), typed(part, s[x], rank)],
        [typed(after, s[x], rank), typed(out, s[x], rank)],
    )
    back = s.pick([None, [1]])
    s.add(op, [state, x], 2, body=body, num_scan_inputs=1, scan_input_directions=back)


def drawn(s: Sketch, op: str) -> None:
    """Numbers that only their shape and type can be compared of."""
    seed = s.pick([None, 1.0])
    if op == "Bernoulli":
        s.add(op, [s.fresh(s.array(s.shape(2), F32, 0, 1))], random=True, seed=seed)
    elif op == "Multinomial":
        x = s.fresh(s.array((s.integer(1, 4), s.integer(1, 5)), F32))
        s.add(op, [x], random=True, seed=seed, sample_size=s.integer(1, 9))
    elif op.endswith("Like"):
        s.add(op, [s.operand([F32, F64])], random=True, seed=seed)
    else:
        s.add(op, [], random=True, seed=seed, shape=list(s.shape(s.integer(1, 3))))


def fourier(s: Sketch, op: str) -> None:
    n, parts = s.integer(1, 17), s.pick([1, 2])
    x = s.fresh(s.array((s.integer(1, 3), n, parts), s.pick([F32, F32, F64])))
    inverse = s.pick([None, 1]) if parts == 2 else None
    one_sided = s.pick([None, 1]) if parts == 1 else None
    length = s.scalar(s.integer(1, 20)) if s.chance(0.3) else ""
    s.add(op, [x, length, s.scalar(s.pick([1, -2]))], inverse=inverse,
          onesided=one_sided)  # fmt: skip


def short_fourier(s: Sketch, op: str) -> None:
    x = s.fresh(s.array((s.integer(1, 2), s.integer(16, 40), 1), F32))
    inputs = [x, s.scalar(s.integer(1, 6))]
    size = s.integer(4, 12)
    if s.chance(0.5):
        inputs += [s.fresh(s.array((size,), F32, 0, 1), parameter=True)]
    inputs += [""] * (3 - len(inputs)) + [s.scalar(size)]
    s.add(op, inputs, onesided=s.pick([None, 0, 1]))


def window(s: Sketch, op: str) -> None:
    size = s.scalar(s.integer(1, 40), s.pick([I64, I32]))
    s.add(op, [size], periodic=s.pick([None, 0]))


def mel(s: Sketch, op: str) -> None:
    ends = [s.scalar(10.0, F32), s.scalar(3000.0, F32)]
    counts = [s.scalar(x) for x in (s.integer(2, 8), s.pick([16, 64]), 8000)]
    s.add(op, [*counts, *ends])


def counted_words(s: Sketch, op: str) -> None:
    pool = [1, 2, 3, 1, 2, 2, 3, 3, 1]  # three words, then three pairs
    x = s.fresh(s.array((s.integer(1, 12),), s.pick([I64, I32]), 0, 4))
    s.add(
        op,
        [x],
        mode=s.pick(["TF", "IDF", "TFIDF"]),
        min_gram_length=1,
        max_gram_length=2,
        max_skip_count=s.integer(0, 2),
        ngram_counts=[0, 3],
        ngram_indexes=[0, 1, 2, 3, 4, 5],
        pool_int64s=pool,
        weights=s.pick([None, [1.0, 2.0, 0.5, 1.0, 3.0, 1.0]]),
    )


def optional(s: Sketch, op: str) -> None:
    """Of a tensor: it is there, and it is what it is."""
    if s.opset < 18:
        raise Rejected(f"{op}: only of optionals")
    s.add(op, [s.operand(FLOATS)])


RECIPES: dict[str, Recipe] = {
    **dict.fromkeys(words("GRU LSTM RNN"), recurrent),
    **dict.fromkeys(
        words("""
            Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform
            RandomUniformLike
        """),
        drawn,
    ),
    **dict.fromkeys(words("BlackmanWindow HammingWindow HannWindow"), window),
    **dict.fromkeys(words("OptionalGetElement OptionalHasElement"), optional),
    "DFT": fourier,
    "If": choice,
    "Loop": loop,
    "MelWeightMatrix": mel,
    "STFT": short_fourier,
    "Scan": scan,
    "TfIdfVectorizer": counted_words,
}
