"""A kernel whose sizes are known when it runs, from the same one cut at samples.

In:  kernels that are equal but for their numbers, one for each sample of dimensions.
Out: one whose extents are `?`.  It reads them from one more input, the last:

    %sizes: tensor<Kxi64>        K sizes, which the program has evaluated

What differs otherwise than in sizes stops it with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nanoloom.dynamic.constants import wholes_of
from nanoloom.dynamic.dynamic_refusal import NotDynamic, no_size
from nanoloom.dynamic.polynomial import Dims, Size, found
from nanoloom.dynamic.rebuild_operations import ARRAYS, EMPTY, remade
from nanoloom.ir.mlir import arith, func, ir, named, operations, sign, tensor

DYNAMIC = ir.ShapedType.get_dynamic_size()
# Of a function: which size each extent of each argument is, NUMBER for none of them.
EXTENTS, NUMBER = "nanoloom.extents", -1
ARGUMENT = "nanoloom.sizes"  # of a function: which argument they are read from
MOST = "nanoloom.most"  # of a function: what each size is at most, where that is known
UNSEEN = {"function_type", *ARRAYS}  # attributes that types or operands tell as well
LOOP = "nanoloom.repeat"  # on an scf.while: it is a Loop of the model
NUMBERS = (ir.IndexType, ir.IntegerType, ir.F32Type, ir.F64Type)  # that may be sizes
Shape = tuple[Size, ...]


@dataclass(frozen=True)
class DynamicKernel:
    """A kernel on tensors as text, and the sizes that it reads, in order.

    arguments: shapes, without the one that has the sizes.
    """

    text: str
    sizes: tuple[Size, ...]
    arguments: tuple[Shape, ...] = ()


def make_dynamic(
    modules: Sequence[ir.Module], samples: Sequence[Dims], most: Dims | None = None
) -> DynamicKernel:
    """The kernel with its sizes; the first of the modules becomes it.

    most: of the dimensions, where it is known: temporaries have the room then.  Raises
    Differs.
    """
    rows = [operations(module, lambda _: True) for module in modules]
    if len({tuple(op.operation.name for op in row) for row in rows}) > 1:
        raise NotDynamic("other sizes are computed by other operations")
    lifting = MakeDynamic(samples, most)
    changes: list[Callable[[], None]] = []
    for ops in zip(*rows, strict=True):
        changes += lifting.changes([op.operation for op in ops])
    if lifting.sizes:
        lifting.read_sizes(modules[0])
        for change in changes:
            change()
        close(modules[0].body.operations[0])
        modules[0].operation.verify()
        if most is None:
            require_no_rows(modules[0])
    text = modules[0].operation.get_asm(enable_debug_info=False)
    return DynamicKernel(text, tuple(lifting.sizes), tuple(lifting.arguments))


def require_no_rows(module: ir.Module) -> None:
    """Raise Differs for rows of unknown number that an inner Loop of the model makes.

    A kernel has temporaries of known sizes in its scratch memory.
    """
    for loop in named(module, "scf.while"):
        outer = loop.operation.parent
        inner = outer is not None and outer.name != "func.func"
        if not inner or LOOP not in loop.operation.attributes:
            continue
        for value in loop.operation.operands:
            made = value.owner
            if isinstance(made, ir.Block) or made.name != "tensor.empty":
                continue
            if not ir.RankedTensorType(value.type).has_static_shape:
                raise NotDynamic("an inner loop makes rows whose number is a size")


@dataclass
class MakeDynamic:
    """The sizes of one kernel, while they are found and put into it."""

    samples: Sequence[Dims]
    most: Dims | None = None
    sizes: list[Size] = field(default_factory=list[Size])
    values: list[ir.Value] = field(default_factory=list[ir.Value])
    arguments: list[Shape] = field(default_factory=list[Shape])

    def size(self, numbers: Sequence[int], where: str) -> Size:
        made = found(numbers, self.samples)
        if made is None:
            raise no_size(where, self.samples[0])
        if made.number is None and made not in self.sizes:
            self.sizes.append(made)
        return made

    def shape(self, kinds: Sequence[ir.Type], where: str) -> Shape:
        """The sizes of tensors' axes; () for what is no tensor."""
        if not all(isinstance(kind, ir.RankedTensorType) for kind in kinds):
            if len(set(map(str, kinds))) > 1:
                raise NotDynamic(f"{where}: other sizes have other types")
            return ()
        shapes = [ir.RankedTensorType(kind).shape for kind in kinds]
        if len({len(shape) for shape in shapes}) > 1:
            raise NotDynamic(f"{where}: other sizes have other axes")
        return tuple(self.size(n, where) for n in zip(*shapes, strict=True))

    def changes(self, ops: Sequence[ir.Operation]) -> list[Callable[[], None]]:
        """What becomes of an operation, of which there is one for each sample."""
        op, where = ops[0], ops[0].name
        if where == "func.func":
            blocks = [x.regions[0].blocks[0] for x in ops]
            kinds = zip(*[[a.type for a in b.arguments] for b in blocks], strict=True)
            self.arguments = [self.shape(each, "an argument") for each in kinds]
        made = [] if where == "func.func" else self.carried(ops)
        results = zip(*[[r.type for r in x.results] for x in ops], strict=True)
        shapes = [self.shape(kinds, where) for kinds in results]
        arrays = self.arrays(ops)
        if any(size.number is None for row in arrays.values() for size in row):
            kinds = [sized(r.type, s) for r, s in zip(op.results, shapes, strict=True)]
            made.append(lambda: remade(op, kinds[0], arrays, self.value))
        elif op.name == "arith.constant":
            made += self.constant(ops)
        else:
            for result, shape in zip(op.results, shapes, strict=True):
                if any(size.number is None for size in shape):
                    made.append(lambda r=result, s=shape: r.set_type(sized(r.type, s)))
        return made

    def carried(self, ops: Sequence[ir.Operation]) -> list[Callable[[], None]]:
        """What becomes of the tensors that loops carry."""
        made: list[Callable[[], None]] = []
        rows = [
            [a for region in op.regions for block in region for a in block.arguments]
            for op in ops
        ]
        for arguments in zip(*rows, strict=True):
            shape = self.shape([a.type for a in arguments], ops[0].name)
            if any(size.number is None for size in shape):
                first = arguments[0]
                made.append(lambda a=first, s=shape: a.set_type(sized(a.type, s)))
        return made

    def arrays(self, ops: Sequence[ir.Operation]) -> dict[str, Shape]:
        """The numbers among an operation's attributes that may be sizes.

        Raises Differs if others are not the same.
        """
        found: dict[str, Shape] = {}
        for name in ops[0].attributes:
            each = [op.attributes[name] for op in ops]
            if name in ARRAYS:
                rows = zip(*[list(a) for a in each], strict=True)  # type: ignore[call-overload] - MLIR's stubs know no kinds of attributes
                found[name] = tuple(self.size(n, ops[0].name) for n in rows)
            elif (
                name not in UNSEEN
                and ops[0].name != "arith.constant"
                and len(set(map(str, each))) > 1
            ):
                raise NotDynamic(f"{ops[0].name}: other sizes have another {name}")
        if ops[0].name == "tensor.empty":
            kinds = [op.results[0].type for op in ops]
            found[EMPTY] = self.shape(kinds, "tensor.empty")
        return found

    def constant(self, ops: Sequence[ir.Operation]) -> list[Callable[[], None]]:
        """A constant that is a size is read; raises Differs for others that differ."""
        each = [op.attributes["value"] for op in ops]
        if len(set(map(str, each))) == 1:
            return []
        kind = ops[0].results[0].type
        if not isinstance(kind, NUMBERS):
            raise no_size("a constant", self.samples[0])
        wholes = wholes_of(each)
        if wholes is None:
            raise no_size("a constant", self.samples[0])
        numbers = wholes.numbers
        # The last of elements in several axes is no size, but all of them are one.
        more = [n + 1 for n in numbers]
        less = not found(numbers, self.samples) and bool(found(more, self.samples))
        size = self.size(more if less else numbers, "a constant")

        def change() -> None:
            with ir.InsertionPoint(ops[0]), ops[0].location:
                whole = self.value(size)
                if less:
                    whole = arith.subi(whole, arith.constant(whole.type, 1))
                ops[0].results[0].replace_all_uses_with(wholes.of(whole, kind))

        return [change]

    def value(self, size: Size) -> ir.Value:
        return self.values[self.sizes.index(size)]

    def read_sizes(self, module: ir.Module) -> None:
        """Give the kernel its argument of sizes, and read them first of all."""
        old = module.body.operations[0].operation
        block = old.regions[0].blocks[0]
        inputs = len(block.arguments) - len(list(block.operations)[-1].operands)
        kinds = [
            sized(a.type, shape)
            for a, shape in zip(block.arguments, self.arguments, strict=True)
        ]
        given = ir.RankedTensorType.get(
            [len(self.sizes)], ir.IntegerType.get_signless(64)
        )
        kinds.insert(inputs, given)
        words = list(old.attributes["arg_attrs"])  # type: ignore[call-overload] - MLIR's stubs know no kinds of attributes
        unit = {"bufferization.writable": ir.BoolAttr.get(False)}
        words.insert(
            inputs, ir.DictAttr.get({**unit, "nanoloom.constant": ir.UnitAttr.get()})
        )
        with ir.InsertionPoint(module.body):
            kernel = func.FuncOp("kernel", ir.FunctionType.get(kinds, []))
            entry = kernel.add_entry_block()
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(words)
        kernel.attributes[ARGUMENT] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), inputs
        )
        kernel.attributes[EXTENTS] = self.extents(inputs)
        if self.most is not None:
            most = [size.of(self.most) for size in self.sizes]
            kernel.attributes[MOST] = ir.DenseI64ArrayAttr.get(most)
        own = list(entry.arguments)
        with ir.InsertionPoint(entry), ir.Location.unknown():
            for i in range(len(self.sizes)):
                place = arith.constant(ir.IndexType.get(), i)
                word = tensor.extract(own[inputs], [place])
                self.values.append(arith.index_cast(ir.IndexType.get(), word))
        rest = own[:inputs] + own[inputs + 1 :]
        for argument, new in zip(block.arguments, rest, strict=True):
            argument.replace_all_uses_with(new)
        for op in list(block.operations):
            entry.append(op)
        old.erase()

    def extents(self, inputs: int) -> ir.ArrayAttr:
        """The attribute EXTENTS: which size each extent of each argument is."""
        rows = [
            [NUMBER if s.number is not None else self.sizes.index(s) for s in shape]
            for shape in self.arguments
        ]
        rows.insert(inputs, [NUMBER])
        return ir.ArrayAttr.get([ir.DenseI64ArrayAttr.get(row) for row in rows])


def sized(kind: ir.Type, shape: Shape) -> ir.Type:
    """The type of a tensor with these sizes."""
    if not isinstance(kind, ir.RankedTensorType):
        return kind
    known = [DYNAMIC if size.number is None else size.number for size in shape]
    return ir.RankedTensorType.get(known, kind.element_type)


def close(kernel: ir.OpView) -> None:
    """Let a function give what its last operation returns."""
    block = kernel.operation.regions[0].blocks[0]
    returned = list(block.operations)[-1].operation.operands
    sign(kernel, [value.type for value in returned])
