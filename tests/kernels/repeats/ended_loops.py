"""Loops drawn at random, of which only a run knows how many trips they have.

Numbers are small integers, in f32 where they are multiplied: exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx.parser
import onnxruntime

HEAD = '<ir_version: 8, opset_import: ["": 18]>\n'
# What a trip makes of a value u: of small integers small integers.  A weight is w<i>.
STEPS = {
    "product": ("[{r},{c}]", "p{i} = MatMul(v{i}, w{i})", "[{c},{c}]"),
    "image": (
        "[1,{r},{c},5]",
        "p{i} = Conv<pads = [1, 1, 1, 1]>(v{i}, w{i})",
        "[{r},{r},3,3]",
    ),
    "sum": ("[{r},{c}]", "p{i} = Add(v{i}, w{i})", "[{r},{c}]"),
    "row": (
        "[{r},{c}]",
        "s{i} = ReduceSum(v{i}, last) p{i} = Sub(w{i}, s{i})",
        "[{c}]",
    ),
    "number": ("[{r}]", "p{i} = Add(v{i}, trip)", "[1]"),
}


@dataclass
class EndedLoop:
    """A model with one Loop, and what it is called with.

    steps: of each carried value, which of STEPS.  scans: those that every trip shows.
    limit: "" for none, "most" for a constant, "given" for an input.  start: whether the
    first condition is an input.
    """

    steps: list[str]
    scans: list[int]
    limit: str
    start: bool
    most: int = 50
    feeds: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])

    def model(self, random: np.random.Generator) -> onnx.ModelProto:
        inputs, weights, body, kinds = ["float end"], [], [], []
        for i, step in enumerate(self.steps):
            sizes = {"r": int(random.integers(1, 9)), "c": int(random.integers(1, 20))}
            shape, line, weight = (text.format(i=i, **sizes) for text in STEPS[step])
            kinds.append(f"float{shape}")
            inputs.append(f"float{shape} x{i}")
            weights.append(f"float{weight} w{i}")
            body += [line, f"y{i} = Mod<fmod = 1>(p{i}, seven)"]
            body += [f"o{i} = Mul(y{i}, two)"] if i in self.scans else []
            for name, text in ((f"x{i}", shape), (f"w{i}", weight)):
                sizes_of = [int(n) for n in text.strip("[]").split(",")]
                drawn = random.integers(-3, 4, sizes_of).astype(np.float32)
                self.feeds[name] = drawn
        inputs += ["int64 given"] if self.limit == "given" else []
        inputs += ["bool start"] if self.start else []
        made = onnx.parser.parse_model(HEAD + self.text(inputs, weights, body, kinds))
        for name in [x for x in self.feeds if x.startswith("w")]:
            array = onnx.numpy_helper.from_array(self.feeds.pop(name), name)
            made.graph.initializer.append(array)
        return made

    def text(
        self, inputs: list[str], weights: list[str], body: list[str], kinds: list[str]
    ) -> str:
        count = range(len(self.steps))
        outputs = [f"{kind} z{i}" for i, kind in enumerate(kinds)]
        rows = [kinds[i].replace("[", "[trips,") + f" a{i}" for i in self.scans]
        formals = ", ".join(f"{kind} v{i}" for i, kind in enumerate(kinds))
        left = ", ".join([*(f"y{i}" for i in count), *(f"o{i}" for i in self.scans)])
        made = ", ".join([*(f"z{i}" for i in count), *(f"a{i}" for i in self.scans)])
        begun = ", ".join(f"x{i}" for i in count)
        return f"""ended ({", ".join(inputs)}) => ({", ".join([*outputs, *rows])})
        <{", ".join(weights)}> {{
          most = Constant<value_int = {self.most}>()
          zero = Constant<value_float = 0.0>()  one = Constant<value_float = 1.0>()
          seven = Constant<value_float = 7.0>()  two = Constant<value_float = 2.0>()
          last = Constant<value_ints = [-1]>()
          {"" if self.start else "start = Constant<value = bool {1}>()"}
          n, {made} = Loop ({self.limit}, start, zero, {begun}) <
            body = step (int64 number, bool k, float before, {formals})
                => (more, n2, {left}) {{
              trip = Cast<to = 1>(number)
              n2 = Add(before, one)  more = Less(n2, end)
              {"  ".join(body)}
            }}>
        }}"""


def drawn(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray], bool]:
    """A model, its inputs but for what ends it, and whether "given" is one of them."""
    random = np.random.default_rng(seed)
    steps = [str(x) for x in random.choice([*STEPS], int(random.integers(1, 4)))]
    scans = [i for i in range(len(steps)) if random.random() < 0.4]
    limit = str(random.choice(["", "most", "given"]))
    loop = EndedLoop(steps, scans, limit, bool(random.integers(2)))
    model = loop.model(random)
    return model, loop.feeds, limit == "given"


def reference(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime gives without optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return [np.asarray(x) for x in session.run(None, feeds)]
