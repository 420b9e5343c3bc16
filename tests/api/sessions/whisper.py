"""A small Whisper of one layer each, written as exporters write it.

Three models with the same weights: `encoder` takes a spectrogram and gives states,
`first` makes the keys and values of these and of the first tokens, `later` goes on.
Their masks and positions are made in the graph, of how much is kept.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper, parser

WORDS, WIDTH, MELS, FRAMES, PLACES = 30, 16, 6, 24, 40
SOURCE = FRAMES // 2  # states: the second convolution has a stride of 2
HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'

GELU = """
    d# = Div(x#, root)  e# = Erf(d#)  f# = Add(e#, one)
    g# = Mul(x#, f#)  h# = Mul(g#, half)
"""
# x#: rows.  y#: their sum with what two heads made of keys k# and values v#.
ATTENTION = """
    n# = LayerNormalization(x#, scale, shift)
    qa# = MatMul(n#, wq#)  qb# = Reshape(qa#, heads)
    q# = Transpose<perm = [0, 2, 1, 3]>(qb#)
    KEYS#
    t# = Transpose<perm = [0, 1, 3, 2]>(k#)
    sa# = MatMul(q#, t#)
    MASK#
    p# = Softmax<axis = -1>(s#)  oa# = MatMul(p#, v#)
    ob# = Transpose<perm = [0, 2, 1, 3]>(oa#)  oc# = Reshape(ob#, joined)
    o# = MatMul(oc#, wo#)  y# = Add(x#, o#)
"""
OF_ROWS = """
    ka# = MatMul(n#, wk#)  kb# = Reshape(ka#, heads)
    NEW_key = Transpose<perm = [0, 2, 1, 3]>(kb#)
    va# = MatMul(n#, wv#)  vb# = Reshape(va#, heads)
    NEW_value = Transpose<perm = [0, 2, 1, 3]>(vb#)
"""
ENCODER = """
    xa = Conv<kernel_shape = [3], pads = [1, 1]>(input_features, conv0)
    GELUa
    xb = Conv<kernel_shape = [3], pads = [1, 1], strides = [2]>(ha, conv1)
    GELUb
    rows = Transpose<perm = [0, 2, 1]>(hb)
    x1 = Add(rows, sinusoids)
    ATTEND1
    last_hidden_state = LayerNormalization(y1, scale, shift)
"""
DECODER = """
    length = Shape<start = 1, end = 2>(input_ids)
    batch = Shape<start = 0, end = 1>(input_ids)
    new = Squeeze(length)
    counted = Range(zero, new, step)
    places = Add(counted, kept)
    matrix = Unsqueeze(places, front)
    times = Concat<axis = 0>(batch, front_one)
    all_places = Tile(matrix, times)
    words = Gather(table, input_ids)
    positions = Gather(position_table, all_places)
    x1 = Add(words, positions)
    total = Add(kept, new)
    every = Range(zero, total, step)
    column = Unsqueeze(places, last)
    earlier = LessOrEqual(every, column)
    ATTEND1
    x2 = Identity(y1)
    ATTEND2
    n3 = LayerNormalization(y2, scale, shift)
    logits = MatMul(n3, head)
"""
CAUSAL = "s# = Where(earlier, sa#, never)"


def layers(text: str, keys: dict[str, str], masks: dict[str, str]) -> str:
    """Attention in its places, by the numbers of keys."""
    for number, key in keys.items():
        body = ATTENTION.replace("KEYS#", key).replace("MASK#", masks[number])
        text = text.replace(f"ATTEND{number}", body.replace("#", number))
    for number in "ab":
        text = text.replace(f"GELU{number}", GELU.replace("#", number))
    return text


def weighed(interface: str, body: str) -> onnx.ModelProto:
    model = parser.parse_model(f"{HEADER}g {interface} {{ {body} }}")
    random = np.random.default_rng(7)
    shapes = {f"w{x}{number}": (WIDTH, WIDTH) for number in "12" for x in "qkvo"}
    shapes |= {"conv0": (WIDTH, MELS, 3), "conv1": (WIDTH, WIDTH, 3)}
    shapes |= {"sinusoids": (SOURCE, WIDTH), "position_table": (PLACES, WIDTH)}
    shapes |= {"table": (WORDS, WIDTH), "head": (WIDTH, WORDS), "shift": (WIDTH,)}
    arrays = {
        name: (random.standard_normal(shape) / 3).astype(np.float32)
        for name, shape in shapes.items()
    }
    arrays["scale"] = 1 + random.random(WIDTH, np.float32)
    numbers = {"root": np.sqrt(2), "one": 1, "half": 0.5, "never": -1000}
    arrays |= {name: np.array(x, np.float32) for name, x in numbers.items()}
    integers = {"zero": 0, "step": 1, "front": [0], "last": [1], "front_one": [1]}
    integers |= {"heads": [0, 0, 2, 8], "joined": [0, 0, WIDTH]}
    arrays |= {name: np.array(x, np.int64) for name, x in integers.items()}
    used = {name for node in model.graph.node for name in node.input}
    for name in sorted(used & arrays.keys()):
        model.graph.initializer.append(numpy_helper.from_array(arrays[name], name))
    return model


def encoder() -> onnx.ModelProto:
    interface = f"""(float[batch, {MELS}, {FRAMES}] input_features)
        => (float[batch, {SOURCE}, {WIDTH}] last_hidden_state)"""
    keys = OF_ROWS.replace("NEW_key", "k#").replace("NEW_value", "v#")
    body = layers(ENCODER, {"1": keys}, {"1": "s# = Identity(sa#)"})
    return weighed(interface, body)


def kept(prefix: str, side: str, length: str) -> str:
    names = (f"{prefix}_0_{side}_{kind}" for kind in ("key", "value"))
    return ", ".join(f"float[batch, 2, {length}, 8] {name}" for name in names)


def first() -> onnx.ModelProto:
    """Of the first tokens, and of what the encoder made."""
    own = """NEW = x  k# = Identity(present_0_decoder_key)
        v# = Identity(present_0_decoder_value)"""
    own = own.replace("NEW = x", OF_ROWS.replace("NEW", "present_0_decoder"))
    other = OF_ROWS.replace("n#", "encoder_hidden_states")
    other = other.replace("NEW", "present_0_encoder")
    other += """k# = Identity(present_0_encoder_key)
        v# = Identity(present_0_encoder_value)"""
    masks = {"1": CAUSAL, "2": "s# = Identity(sa#)"}
    body = layers(DECODER, {"1": own, "2": other}, masks)
    interface = f"""(int64[batch, sequence] input_ids,
        float[batch, source, {WIDTH}] encoder_hidden_states)
        => (float[batch, sequence, {WORDS}] logits,
        {kept("present", "decoder", "sequence")},
        {kept("present", "encoder", "source")})"""
    return weighed(interface, f"kept = Identity(zero) {body}")


def later() -> onnx.ModelProto:
    """Of tokens behind others; Concat of one tensor stands where a cache was empty."""
    own = """past_key = Concat<axis = -2>(past_key_values_0_decoder_key)
        present_0_decoder_key = Concat<axis = -2>(past_key, new_key)
        present_0_decoder_value = Concat<axis = -2>(past_key_values_0_decoder_value,
                                                    new_value)
        k# = Identity(present_0_decoder_key)  v# = Identity(present_0_decoder_value)"""
    own = OF_ROWS.replace("NEW", "new") + own
    other = """k# = Concat<axis = -2>(past_key_values_0_encoder_key)
        v# = Concat<axis = -2>(past_key_values_0_encoder_value)"""
    masks = {"1": CAUSAL, "2": "s# = Identity(sa#)"}
    body = layers(DECODER, {"1": own, "2": other}, masks)
    interface = f"""(int64[batch, sequence] input_ids,
        {kept("past_key_values", "decoder", "past")},
        {kept("past_key_values", "encoder", "source")})
        => (float[batch, sequence, {WORDS}] logits,
        {kept("present", "decoder", "total")})"""
    count = """there = Shape<start = 2, end = 3>(past_key_values_0_decoder_key)
        kept = Squeeze(there)"""
    return weighed(interface, f"{count} {body}")
