"""What has no value before the program runs: Python and NumPy say so in a sentence.

Without this they would raise errors of their own about types that no user has written,
or answer with arrays of objects.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

# The names of Python's operators, as they are written.
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<",
    "rshift": ">>",
}  # fmt: skip
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_PREFIXES = {"pos": "+", "neg": "-", "invert": "~"}
_CALLS = (
    "abs", "float", "int", "complex", "index", "round", "floor", "ceil", "trunc", "len",
    "iter",
)  # fmt: skip
# NumPy's words for what stands between a number of its own and an unknown value.
_NUMPY: dict[str, Callable[..., object]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "matmul": operator.matmul,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}


class Unknown:
    """All operators, refused; those that mean something are defined by who inherits."""

    @property
    def written(self) -> str:
        """How it stands in an expression."""
        return str(self)

    def refuse(self, text: str) -> NoReturn:
        """Raise Error for an expression that means nothing.  text: the expression."""
        raise NotImplementedError

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *given: object, **more: object
    ) -> object:
        """A number of NumPy's beside an operator is a number."""
        name = ufunc.__name__
        numbers = [number(x) for x in given]
        array = any(isinstance(x, np.ndarray) for x in numbers)
        if method == "__call__" and name in _NUMPY and not more and not array:
            return _NUMPY[name](*numbers)
        return self._refuse_numpy(name, given)

    def __array_function__(
        self,
        function: Callable[..., object],
        types: object,
        given: Sequence[object],
        more: object,
    ) -> NoReturn:
        del types, more
        self._refuse_numpy(function.__name__, given)

    def _refuse_numpy(self, name: str, given: Sequence[object]) -> NoReturn:
        self.refuse(f"np.{name}({', '.join(map(shown, given))})")


def number(x: object) -> object:
    """A number of NumPy's as one of Python's; other things as they are."""
    single = isinstance(x, np.generic) or (isinstance(x, np.ndarray) and not x.ndim)
    return x.item() if single else x


def shown(x: object) -> str:
    if isinstance(x, Unknown):
        return x.written
    return "an array" if isinstance(x, np.ndarray) else str(x)


def _refusing(form: str) -> Callable[..., NoReturn]:
    """A method that refuses.  form: how it is written, of the value and the other."""

    def method(self: Unknown, *others: object) -> NoReturn:
        self.refuse(form.format(*map(shown, (self, *others))))

    return method


for _name, _symbol in _OPERATORS.items():
    setattr(Unknown, f"__{_name}__", _refusing(f"{{0}} {_symbol} {{1}}"))
    setattr(Unknown, f"__r{_name}__", _refusing(f"{{1}} {_symbol} {{0}}"))
for _name, _symbol in _COMPARISONS.items():
    setattr(Unknown, f"__{_name}__", _refusing(f"{{0}} {_symbol} {{1}}"))
for _name, _symbol in _PREFIXES.items():
    setattr(Unknown, f"__{_name}__", _refusing(f"{_symbol}{{0}}"))
for _name in ("divmod", "rdivmod"):
    setattr(Unknown, f"__{_name}__", _refusing("divmod({0}, {1})"))
for _name in _CALLS:
    setattr(Unknown, f"__{_name}__", _refusing(f"{_name}({{0}})"))
setattr(Unknown, "__getitem__", _refusing("{0}[{1}]"))  # noqa: B010 - as those above
