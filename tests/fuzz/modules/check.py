"""Drawn modules: compiled, called with other sizes, strides, aliases, and compared."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

import nanoloom
from nanoloom.errors import Error, InternalError, ModelWarning
from nanoloom.torch.backend import nanoloom as backend
from tests.fuzz.cases import Bench, Finding, Outcome
from tests.fuzz.modules import calls, reference
from tests.fuzz.modules.axes import MOVING, REDUCING
from tests.fuzz.modules.draw import Draw
from tests.fuzz.modules.layers import LAYERS
from tests.fuzz.modules.operators import ELEMENTS, PAIRS
from tests.fuzz.modules.places import PLACES, WRITING

Array = Any
TABLES: tuple[tuple[float, Sequence[Any]], ...] = (
    (0.2, ELEMENTS), (0.15, PAIRS), (0.12, REDUCING), (0.18, MOVING), (0.12, PLACES),
    (0.23, LAYERS),
)  # fmt: skip
WRITE_SHARE, AUTOCAST_SHARE, EXPORT_SHARE, ALIAS_SHARE = 0.12, 0.1, 0.45, 0.15
NOISES, MORE_NOISES = 4, 24
EPS = {torch.float64: 2.0**-52, torch.float32: 2.0**-23, torch.float16: 2.0**-10,
       torch.bfloat16: 2.0**-7}  # fmt: skip


@dataclass
class Case:
    """A module, what it is called with, and which axes are open."""

    source: str
    module: Any
    calls: list[list[Any]]
    axes: list[dict[int, str]]
    operators: list[str]


def drawn(seed: int) -> tuple[Case, np.random.Generator]:
    """The module of a seed."""
    rng = np.random.default_rng([11, seed])
    torch.manual_seed(seed)
    dtype = calls.DTYPES[int(rng.integers(len(calls.DTYPES)))]
    given = calls.drawn_inputs(rng, dtype)
    arguments = [
        [x.tensor(sizes, rng) for x in given] for sizes in calls.drawn_sizes(rng)
    ]
    autocast = dtype == torch.float32 and rng.random() < AUTOCAST_SHARE
    d = Draw(rng, arguments, dtype, autocast=bool(autocast))
    writes = rng.random() < 0.4
    wanted, tried, steps = int(rng.integers(3, 13)), 0, 0
    while steps < wanted and tried < 400:
        tried += 1
        table = WRITING if writes and d.chance(WRITE_SHARE) else drawn_table(d)
        steps += d.step(table)
    source = d.source(results(d))
    axes = [{i: a for i, a in enumerate(x.axes) if isinstance(a, str)} for x in given]
    scope: dict[str, Any] = {}
    exec(source, scope)
    module = scope["Drawn"]().to(dtype).eval().requires_grad_(False)
    return Case(source, module, arguments, axes, list(d.body)), rng


def drawn_table(d: Draw) -> Sequence[Any]:
    at = d.rng.random()
    for share, table in TABLES:
        at -= share
        if at < 0:
            return table
    return ELEMENTS


def results(d: Draw) -> str:
    """What nothing reads, the last ones first; sometimes an argument or a size."""
    text = "\n".join(d.body)
    unread = [n for n in d.pool if len(re.findall(rf"\b{n}\b", text)) < 2]
    chosen = list(dict.fromkeys([d.pool[-1], *unread[::-1][:4]]))
    if d.chance(0.2):
        chosen.append(d.pick(d.pool))
    if d.chance(0.08):
        chosen.append(f"{d.args[0]}.numel()")
    if d.chance(0.1):
        return f"dict({', '.join(f'r{i}={n}' for i, n in enumerate(chosen))})"
    return f"({', '.join(chosen)},)" if len(chosen) > 1 or d.flag() else chosen[0]


def leaves(made: Any, args: Sequence[Any], module: Any) -> list[Any]:
    """Results, then the arguments and the buffers as they are left."""
    found = pytree.tree_leaves(made)
    return [x.clone() if isinstance(x, torch.Tensor) else x
            for x in [*found, *args, *module.buffers()]]  # fmt: skip


class NoReference(Exception):
    """torch has no result in float64."""


class Compared:
    """torch's own module and its twins in float64, called beside what is tested."""

    def __init__(self, module: Any, eps: float) -> None:
        self.own, self.eps = copy.deepcopy(module), eps
        self.exact = reference.Twin(module, 0, 0)
        self.others = [reference.Twin(module, eps, i + 1) for i in range(NOISES)]

    def expected(self, args: Sequence[Any]) -> list[reference.Expected]:
        given = reference.copied(args)
        before = copy.deepcopy(self.exact.module)
        with torch.no_grad():
            own = leaves(self.own(*given), given, self.own)
        try:
            exact = self.exact(args, leaves)
            moved = [each(args, leaves) for each in self.others]
        except Exception as error:  # what eager raises of other types is no fault here
            raise NoReference(one_line(error)) from error
        self.before, self.args = before, args
        found = [
            reference.Expected(a, b, list(rest))
            for a, b, *rest in zip(own, exact, *moved, strict=True)
        ]
        if any(
            getattr(x.own, "shape", 0) != getattr(x.exact, "shape", 0) for x in found
        ):
            raise NoReference("other shapes")
        return found

    def differing(self, ours: list[Any], args: Sequence[Any]) -> str:
        wanted = self.expected(args)
        if len(ours) != len(wanted):
            return f"{len(ours)} results where {len(wanted)} are wanted"
        for place, (x, each) in enumerate(zip(ours, wanted, strict=True)):
            reason = reference.differing(x, each, self.eps)
            if reason and "numbers; at" in reason:
                reason = self.with_more_noise(x, each, place)
            if reason:
                return f"result {place}: {reason}"
        return ""

    def with_more_noise(self, x: Any, each: reference.Expected, place: int) -> str:
        """Again, with what many and larger disturbances do."""
        moved = list(each.moved)
        for i in range(MORE_NOISES):
            twin = reference.Twin(self.before, self.eps * 4, 100 + i)
            moved.append(twin(self.args, leaves)[place])
        wider = reference.Expected(each.own, each.exact, moved)
        return reference.differing(x, wider, self.eps)


def eps_of(case: Case) -> float:
    """Of the narrowest floats that a run of the module meets."""
    seen: set[Any] = set()

    class Types(torch.utils._python_dispatch.TorchDispatchMode):
        supports_higher_order_operators = True

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = reference.called(self, func, args, kwargs or {})
            every = pytree.tree_leaves((args, made))
            seen.update(x.dtype for x in every if isinstance(x, torch.Tensor))
            return made

    for args in case.calls:
        with torch.no_grad(), Types():
            copy.deepcopy(case.module)(*reference.copied(args))
    return max(EPS.get(x, 0.0) for x in seen)


def check_module(seed: int, bench: Bench) -> Outcome:
    """A module of a seed, by torch.export or torch.compile."""
    bench.at("reference")
    case, rng = drawn(seed)
    path = bench.case / "module.py"
    path.write_text(case.source)
    torch.save(case.calls, bench.case / "calls.pt")
    scope: dict[str, Any] = {"__name__": "drawn"}
    exec(compile(case.source, str(path), "exec"), scope)
    torch.manual_seed(seed)
    dtype = next((x.dtype for x in case.module.parameters()), None)
    module = scope["Drawn"]().eval().requires_grad_(False)
    module.to(dtype or case.calls[0][0].dtype)
    case.module = module
    compared = Compared(module, eps_of(case))
    way = exported if rng.random() < EXPORT_SHARE else traced
    try:
        return way(case, compared, rng, bench)
    except NoReference as error:
        return Outcome("empty", Finding("refused", str(error)))


Run = Callable[..., Any]


def exported(
    case: Case, compared: Compared, rng: np.random.Generator, bench: Bench
) -> Outcome:
    """nanoloom.compile of the module, called with all sizes that export leaves open."""
    module, first = copy.deepcopy(case.module), case.calls[0]
    shapes = None
    if rng.random() < 0.7:
        shapes = [dict.fromkeys(each, torch.export.Dim.AUTO) for each in case.axes]
    bench.at("reference")
    try:
        with torch.no_grad():
            program = torch.export.export(
                module, tuple(reference.copied(first)),
                dynamic_shapes=shapes and tuple(shapes),
            )  # fmt: skip
    except Exception as error:  # noqa: BLE001 - whatever export raises
        return Outcome("empty", Finding("refused", one_line(error)))
    bench.at("compile")
    made = nanoloom.compile(program, cache=bench.cache, threads=1)
    for number, args in enumerate(case.calls):
        if number and not takes(program, args):
            continue
        given = reference.copied(args)
        if number:
            given = [calls.relaid(x, rng) for x in given]
        bench.at(f"call {number}")
        found = made(*given)
        held = pytree.tree_leaves(found)
        held = [x.clone() if isinstance(x, torch.Tensor) else x for x in held]
        buffers = [buffer_of(program, n) for n, _ in case.module.named_buffers()]
        bench.at("comparison")
        ours = [*held, *given, *buffers]
        if reason := compared.differing(ours, args):
            return Outcome(
                "finding", Finding("difference", f"export, call {number}: {reason}")
            )
    return Outcome("passed")


def buffer_of(program: Any, name: str) -> Any:
    found = program.state_dict.get(name)
    return (program.constants[name] if found is None else found).clone()


def takes(program: Any, args: Sequence[Any]) -> bool:
    """Whether torch's own program is one for these sizes."""
    try:
        with torch.no_grad():
            copy.deepcopy(program).module()(*reference.copied(args))
    except Exception:  # noqa: BLE001 - whatever its guards raise
        return False
    return True


def one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"


def traced(
    case: Case, compared: Compared, rng: np.random.Generator, bench: Bench
) -> Outcome:
    """torch.compile, called with all sizes, as they lie and otherwise, and aliases."""
    torch._dynamo.reset()
    module = copy.deepcopy(case.module)
    dynamic = (None, True, False)[int(rng.integers(3))]
    options = {"cache": bench.cache, "threads": 1}
    fast: Any = torch.compile(module, backend=backend, dynamic=dynamic, options=options)
    told: list[str] = []
    bench.at("compile")
    for number, args in enumerate(drawn_calls(case, rng)):
        given = reference.copied(args)
        bench.at(f"call {number}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.filterwarnings("error", ".*a bug of nanoloom")
            try:
                with torch.no_grad():
                    made = fast(*given)
            except Exception as error:  # raised again, unless torch alone fails too
                if fails_without(case, args, dynamic):
                    return Outcome("empty", Finding("refused", one_line(error)))
                raise inner(error) from error
        told += [str(w.message) for w in caught if issubclass(w.category, ModelWarning)]
        if reason := aliasing(made, given, case.module, args):
            text = f"torch.compile({dynamic}), call {number}: {reason}"
            return Outcome("finding", Finding("difference", text))
        bench.at("comparison")
        ours = leaves(made, given, module)
        if reason := compared.differing(ours, args):
            text = f"torch.compile({dynamic}), call {number}: {reason}"
            return Outcome("finding", Finding("difference", text))
    if told:
        return Outcome("partly", Finding("refused", told[0]))
    return Outcome("passed")


def drawn_calls(case: Case, rng: np.random.Generator) -> list[list[Any]]:
    """Each as it is, some with other strides, some with tensors that share memory."""
    found = [list(case.calls[0])]
    for args in case.calls:
        given = [calls.relaid(x, rng) for x in args]
        if rng.random() < ALIAS_SHARE * len(args):
            given = shared(given, rng)
        found.append(given)
    return found


def shared(args: list[Any], rng: np.random.Generator) -> list[Any]:
    """One tensor, or one that overlaps with it, in the place of another like it."""
    pairs = [
        (i, j) for i, x in enumerate(args) for j, y in enumerate(args)
        if i < j and x.shape == y.shape and x.dtype == y.dtype
    ]  # fmt: skip
    if not pairs:
        return args
    i, j = pairs[int(rng.integers(len(pairs)))]
    made = list(args)
    made[j] = made[i]
    if args[i].dim() and rng.random() < 0.5:
        wide = torch.cat([args[i], args[j][-1:]]) if len(args[i]) else args[i]
        made[i], made[j] = wide[: len(args[i])], wide[len(wide) - len(args[i]) :]
    return made


def fails_without(case: Case, args: Sequence[Any], dynamic: Any) -> bool:
    """Whether torch.compile fails with no backend of ours as well."""
    torch._dynamo.reset()
    module = torch.compile(
        copy.deepcopy(case.module), backend="aot_eager", dynamic=dynamic
    )
    try:
        with torch.no_grad():
            for each in (case.calls[0], args):
                module(*reference.copied(each))
    except Exception:  # noqa: BLE001 - whatever Dynamo raises without us
        return True
    return False


def inner(error: Exception) -> Exception:
    """What Dynamo has wrapped."""
    found: Any = error
    while found is not None:
        if isinstance(found, Error):
            return found if not isinstance(found, InternalError) else error
        found = found.__cause__ or getattr(found, "inner_exception", None)
    return error


def aliasing(made: Any, given: Sequence[Any], module: Any, args: Sequence[Any]) -> str:
    """Results lie in the memory of the same arguments as torch's own do."""
    copies = reference.copied(args)
    with torch.no_grad():
        own = copy.deepcopy(module)(*copies)
    wanted = sharing(pytree.tree_leaves(own), copies)
    found = sharing(pytree.tree_leaves(made), given)
    return "" if found == wanted else f"shares {found} where {wanted} are wanted"


def sharing(results: Sequence[Any], args: Sequence[Any]) -> list[int | None]:
    """For each result the first argument that lies in the same memory."""
    places = [x.untyped_storage().data_ptr() for x in args]
    owners = [
        x.untyped_storage().data_ptr()
        if isinstance(x, torch.Tensor) and x.numel() else None for x in results
    ]  # fmt: skip
    return [places.index(x) if x in places else None for x in owners]
