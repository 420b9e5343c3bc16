"""What the compiler has to know of an operator beside its lowering, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Family(Enum):
    """What an operator makes of the order and the sizes of dimensions."""

    OTHER = auto()
    ELEMENTWISE = auto()  # each element from those at its place, broadcast as in numpy
    ONE_TO_ONE = auto()  # the same of the first input alone; the others are one number
    BY_PARAMETERS = auto()  # the same; the others may be of axes that the node names
    REDUCTION = auto()  # along dimensions that a node names
    WINDOW = auto()  # of images [batch, channels, ...], by windows of pixels
    IMAGE = auto()  # of images, otherwise


class Sizes(Enum):
    """Whether a lowering does the same for every size."""

    KNOWN = auto()  # not, or a rule says for which
    ANY = auto()


class Error(Enum):
    """What rounding does to a result."""

    ROUNDED = auto()  # once or a few times for each element
    PARTS = auto()  # nothing: results are parts of the inputs
    SUM = auto()  # relative to the same sum of absolute values
    COMPOSITE = auto()  # many operations in one: relative to the largest result


class OfSizes(Enum):
    """What an operator makes of integers that are sizes, seen in samples alone."""

    UNKNOWN = auto()
    POLYNOMIAL = auto()  # polynomials of its inputs, or only moved
    MOVED = auto()  # where inputs from the second on say the same for all sizes


@dataclass(frozen=True)
class OperatorSpec:
    """What stands in an operator's row; the defaults are right for every operator.

    folds: element types of the first input for which ONNX's reference computes what
    nanoloom's own code does, up to roundings; EVERY where the same numbers come out.
    folds_since: the first version that the reference computes; it takes earlier ones,
    which mean something else, for that one.
    """

    family: Family = Family.OTHER
    sizes: Sizes = Sizes.KNOWN
    folds: tuple[str, ...] = ()
    folds_since: int = 1
    error: Error = Error.ROUNDED
    of_sizes: OfSizes = OfSizes.UNKNOWN
    is_random: bool = False


EVERY = ("every type",)
