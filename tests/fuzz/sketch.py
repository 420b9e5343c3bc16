"""A random graph in the making: its nodes, and what each of its values is.

Every node is evaluated by the oracle when it is added, so the next one knows the types,
shapes and numbers that it can take; one that no oracle runs is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from tests.fuzz.exceptions import OPEN
from tests.fuzz.oracle import Array, Rejected, Step, step_of
from tests.fuzz.spelling import Unspoken, spelled

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
FLOATS = (F32, F64, F16, BFLOAT16)
INTEGERS = tuple(
    np.dtype(f"{sign}int{bits}") for bits in (64, 32, 8, 16) for sign in ("", "u")
)
BOOL, I32, I64 = np.dtype(np.bool_), np.dtype(np.int32), np.dtype(np.int64)
U8, I8 = np.dtype(np.uint8), np.dtype(np.int8)
ALL = (*FLOATS, *INTEGERS, BOOL)
DTYPES = {str(x): x for x in ALL}
SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 47, 64, 65, 97)
ELEMENTS = 6000  # of a drawn array; of a result, three times as many
TAME = 1e4  # what a float may be to go on into another node
ZERO = 0.02  # the share of sizes that are 0


@dataclass
class Sketch:
    """What has been drawn so far.

    given: inputs with their values.  parameters: those that models hold as constants.
    even: every element type as often as another.
    """

    rng: np.random.Generator
    opset: int
    values: dict[str, Array] = field(default_factory=dict[str, Array])
    given: dict[str, Array] = field(default_factory=dict[str, Array])
    parameters: set[str] = field(default_factory=set[str])
    steps: list[Step] = field(default_factory=list[Step])
    random: set[str] = field(default_factory=set[str])  # results nobody can foresee
    even: bool = False

    # ---- numbers

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def real(self, low: float, high: float) -> float:
        """A number that a float holds exactly."""
        return float(np.float32(self.rng.uniform(low, high)))

    def size(self, limit: int = 97) -> int:
        if self.chance(ZERO):
            return 0
        return self.pick([x for x in SIZES if x <= max(1, limit)])

    def shape(self, rank: int | None = None, limit: int = ELEMENTS) -> tuple[int, ...]:
        wanted = self.integer(0, 5) if rank is None else rank
        made: list[int] = []
        for _ in range(wanted):
            room = limit // max(1, math.prod(x for x in made if x))
            made.append(self.size(room if self.chance(0.5) else min(room, 9)))
        return tuple(int(x) for x in self.rng.permutation(made))

    def dtype(self, choices: Sequence[np.dtype]) -> np.dtype:
        """The first choices more often than the others, unless all are even."""
        if self.even:
            return self.pick(choices)
        return choices[min(int(self.rng.geometric(0.5)) - 1, len(choices) - 1)]

    def array(
        self, shape: Sequence[int], dtype: np.dtype, low: float = -4, high: float = 4
    ) -> Array:
        """Numbers between two limits; floats are whole numbers in some arrays."""
        if dtype == BOOL:
            return self.rng.integers(0, 2, shape).astype(dtype)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            first, last = max(info.min, math.ceil(low)), min(info.max, int(high))
            return self.rng.integers(first, last, shape, dtype, endpoint=True)
        drawn = self.rng.uniform(low, high, shape)
        if self.chance(0.2) and high - low >= 4:
            drawn = np.round(drawn)
        return np.asarray(drawn).astype(dtype)

    # ---- values

    def fresh(self, array: Array, *, parameter: bool = False) -> str:
        """A new input of the graph.  parameter: what models hold as a constant."""
        name = f"x{len(self.given)}"
        self.given[name] = self.values[name] = np.asarray(array)
        if parameter:
            self.parameters.add(name)
        return name

    def numbers(self, *values: int, dtype: np.dtype = I64) -> str:
        """A parameter of one axis."""
        return self.fresh(np.array(values, dtype), parameter=True)

    def scalar(self, value: float, dtype: np.dtype = I64) -> str:
        return self.fresh(np.array(value, dtype), parameter=True)

    def operand(
        self,
        dtypes: Sequence[np.dtype] = FLOATS,
        ranks: Sequence[int] = range(6),
        accept: Callable[[Array], bool] = lambda array: True,
    ) -> str:
        """A value that fits, or a new input (which `accept` is not asked about)."""
        found = [n for n in self.values if self.fits(n, dtypes, ranks, accept)]
        if found and self.chance(0.75):
            late = found[-3:] if self.chance(0.7) else found
            return self.pick(late)
        return self.fresh(self.array(self.shape(self.pick(ranks)), self.dtype(dtypes)))

    def fits(
        self,
        name: str,
        dtypes: Sequence[np.dtype],
        ranks: Sequence[int],
        accept: Callable[[Array], bool],
    ) -> bool:
        array = self.values[name]
        fits = array.dtype in dtypes and array.ndim in ranks
        free = name not in self.parameters and name not in self.random
        return fits and free and is_tame(array) and accept(array)

    def like(
        self, shape: Sequence[int], dtype: np.dtype, low: float = -4, high: float = 4
    ) -> str:
        """A value of exactly this shape, new or not."""
        for name in reversed(self.values):
            array = self.values[name]
            same = array.shape == tuple(shape) and low == -4 and high == 4
            if same and self.fits(name, (dtype,), range(9), bool_true):
                if self.chance(0.5):
                    return name
                break
        return self.fresh(self.array(shape, dtype, low, high))

    def broadcast(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to this one, or that this one broadcasts to."""
        made = [1 if self.chance(0.3) else d for d in shape]
        made = [
            self.size(5) if d == 1 and self.chance(0.2) else m
            for d, m in zip(shape, made, strict=True)
        ]
        return tuple(made[self.integer(0, len(made)) :] if self.chance(0.3) else made)

    def __getitem__(self, name: str) -> Array:
        return self.values[name]

    # ---- nodes

    def types(self, op: str, place: int = 0, domain: str = "") -> list[np.dtype]:
        """What the operator's input at this place may hold, in this operator set."""
        schema = onnx.defs.get_schema(op, self.opset if not domain else 5, domain)
        wanted = schema.inputs[min(place, len(schema.inputs) - 1)].type_str
        texts = [wanted]
        for constraint in schema.type_constraints:
            if constraint.type_param_str == wanted:
                texts = list(constraint.allowed_type_strs)
        free = OPEN[op][0] if op in OPEN else ""
        known = [x for x in ALL if x.kind not in free]
        return [x for x in known if f"tensor({onnx_name(x)})" in texts]

    def add(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: int | Sequence[bool] = 1,
        *,
        domain: str = "",
        random: bool = False,
        **attributes: Any,
    ) -> list[str]:
        """A node and the names of its results.

        outputs: how many, or which are there.  Attributes that are None are left out.
        Written in the words of the operator set.  Raises Rejected if no reference runs
        it.
        """
        there = [True] * outputs if isinstance(outputs, int) else list(outputs)
        number = len(self.steps)
        names = [f"v{number}_{i}" if here else "" for i, here in enumerate(there)]
        wanted = {k: v for k, v in attributes.items() if v is not None}
        given = list(inputs)
        if not domain:
            try:
                given, wanted = spelled(op, self.opset, inputs, wanted, self.values)
            except Unspoken as error:
                raise Rejected(str(error)) from None
        while given and not given[-1]:
            given.pop()
        node = helper.make_node(
            op, given, names, name=f"n{number}", domain=domain, **wanted
        )
        step = step_of(node, self.opset, self.values)
        made = step.run(self.values)
        for name, array in made.items():
            if array.size > 3 * ELEMENTS or array.dtype not in ALL:
                raise Rejected(f"{op}: {array.dtype} of {array.size} elements")
            if name in self.values:
                raise Rejected(f"{op}: a result named like a value")
        unknown = random or any(x in self.random for x in node.input)
        self.random |= set(made) if unknown else set()
        self.values |= made
        self.steps.append(step)
        return [name for name in names if name]


def bool_true(array: Array) -> bool:
    return True


def is_tame(array: Array) -> bool:
    """Whether its floats are neither infinite nor so large that all else drowns."""
    if array.dtype.kind in "iub":
        return True
    wide = np.abs(array.astype(np.float64))
    return bool(np.isfinite(wide).all()) and float(wide.max(initial=0)) < TAME


def onnx_name(dtype: np.dtype) -> str:
    return {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)
