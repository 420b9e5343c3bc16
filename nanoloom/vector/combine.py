"""How a reduction combines: found in the body, with its neutral element."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.mlir import arith, ir

# operation: its name in vector.reduction
COMBINERS: dict[str, str] = {
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.mulf": "mul",
    "arith.muli": "mul",
    "arith.maximumf": "maximumf",
    "arith.minimumf": "minimumf",
    "arith.maxnumf": "maxnumf",
    "arith.minnumf": "minnumf",
    "arith.maxsi": "maxsi",
    "arith.minsi": "minsi",
    "arith.maxui": "maxui",
    "arith.minui": "minui",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
}


@dataclass(frozen=True)
class Combiner:
    """A commutative operation on this element type."""

    operation: str
    element: ir.Type

    def reduction(self) -> ir.Attribute:
        return ir.Attribute.parse(f"#vector.kind<{COMBINERS[self.operation]}>")

    def apply(self, one: ir.Value, other: ir.Value) -> ir.Value:
        made = ir.Operation.create(self.operation, [one.type], [one, other])
        return made.results[0]

    def neutral(self) -> ir.Value:
        """The element that changes nothing."""
        name = COMBINERS[self.operation]
        if isinstance(self.element, ir.FloatType):
            infinity = float("inf")
            number = {
                "add": -0.0,
                "mul": 1.0,
                "maximumf": -infinity,
                "minimumf": infinity,
                "maxnumf": -infinity,
                "minnumf": infinity,
            }[name]
            return arith.constant(self.element, number)
        width = ir.IntegerType(self.element).width
        least, most = -(1 << (width - 1)), (1 << (width - 1)) - 1
        if width == 1:
            least, most = 0, 1
        number = {
            "add": 0,
            "mul": 1,
            "or": 0,
            "xor": 0,
            "and": -1,
            "maxsi": least,
            "minsi": most,
            "maxui": 0,
            "minui": -1,
        }[name]
        return arith.constant(self.element, number)


def of(block: ir.Block, output: int, inputs: int) -> Combiner | None:
    """The combiner of one output: yield op(accumulator, f(inputs)) or the reverse."""
    accumulator = block.arguments[inputs + output]
    result = list(block.operations)[-1].operation.operands[output]
    op = result.owner
    if isinstance(op, ir.Block) or op.name not in COMBINERS:
        return None
    if len(list(accumulator.uses)) != 1:
        return None
    if accumulator not in list(op.operands):
        return None
    return Combiner(op.name, result.type)
