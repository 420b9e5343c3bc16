"""A written module by torch.export and by torch.compile, beside itself in eager."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

import nanoloom
from nanoloom.errors import ModelWarning
from nanoloom.torch.backend import nanoloom as backend
from tests.fuzz.cases import Bench, Finding, Outcome
from tests.fuzz.modules.calls import relaid
from tests.fuzz.modules.check import inner, one_line
from tests.fuzz.written import (
    attention,
    changes,
    control,
    dimensions,
    encoders,
    functions,
    places,
    recurrent,
    structures,
    types,
)
from tests.fuzz.written.draw import Call, Drawn, Kind, Written

KINDS: tuple[Kind, ...] = tuple(
    kind
    for file in (structures, recurrent, control, dimensions, changes, places, encoders,
                 attention, functions, types)
    for kind in file.KINDS
)  # fmt: skip
# Of the largest number of a result: sums of a few dozen, in several layers.
BOUNDS = {torch.float64: 1e-9, torch.float32: 2e-4, torch.float16: 2.0**-6,
          torch.bfloat16: 2.0**-4}  # fmt: skip


def written(seed: int) -> tuple[Written, str, np.random.Generator]:
    """The module of a seed, and its kind."""
    rng = np.random.default_rng([13, seed])
    kind = KINDS[int(rng.integers(len(KINDS)))]
    return kind(Drawn(rng)), kind.__name__, rng


def check_written(seed: int, bench: Bench) -> Outcome:
    case, kind, rng = written(seed)
    bench.at("reference")
    path = bench.case / "module.py"
    path.write_text(case.source)
    torch.save(case.calls, bench.case / "calls.pt")
    try:
        module = module_of(case, seed, str(path))
        wanted = [called(copy.deepcopy(module), x) for x in case.calls[:1]]
    except Exception as error:  # noqa: BLE001 - what torch raises is no case
        return Outcome(
            "empty", Finding("refused", f"{kind}: {one_line(error)}"), [kind]
        )
    del wanted
    exports = case.whole and rng.random() < 0.5
    way = exported if exports else traced
    outcome = way(case, module, rng, bench)
    return Outcome(outcome.status, outcome.finding, [kind])


def module_of(case: Written, seed: int, path: str) -> Any:
    scope: dict[str, Any] = {"__name__": "written"}
    exec(compile(case.source, path, "exec"), scope)
    torch.manual_seed(seed)
    module = scope["Written"]()
    trains = [
        n
        for n, m in module.named_modules()
        if n and m.training and "train()" in case.init
    ]
    module.eval().requires_grad_(False)
    for name in trains:
        module.get_submodule(name).train()
    narrow = case.dtype is not None and case.dtype.is_floating_point
    return module.to(case.dtype) if narrow else module


def copied(given: Any) -> Any:
    """The same structure; what shares memory does so in the copy."""
    made: dict[Any, Any] = {}

    def one(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        place = x.untyped_storage().data_ptr(), x.dtype
        if place not in made:
            count = x.untyped_storage().nbytes() // x.element_size()
            made[place] = x.as_strided((count,), (1,), 0).clone()
        return made[place].as_strided(x.shape, x.stride(), x.storage_offset())

    return pytree.tree_map(one, given)


def called(run: Callable[..., Any], given: Call) -> list[Any]:
    """Results, their structure, and the arguments as they are left."""
    args, kwargs = copied(given)
    with torch.no_grad():
        made = run(*args, **kwargs)
    leaves, spec = pytree.tree_flatten(made)
    found = [*leaves, *pytree.tree_leaves((args, kwargs))]
    return [
        str(spec),
        *(x.clone() if isinstance(x, torch.Tensor) else x for x in found),
    ]


def differing(ours: Sequence[Any], wanted: Sequence[Any], bound: float = 0.0) -> str:
    if len(ours) != len(wanted):
        return f"{len(ours) - 1} results where {len(wanted) - 1} are wanted"
    for place, (a, b) in enumerate(zip(ours, wanted, strict=True)):
        if reason := different(a, b, bound):
            return f"result {place - 1}: {reason}"
    return ""


def different(a: Any, b: Any, bound: float) -> str:
    if type(a) is not type(b):
        return f"a {type(a).__name__} where a {type(b).__name__} is wanted"
    if isinstance(b, float):
        return "" if a == b or abs(a - b) <= 1e-4 * max(1, abs(b)) else f"{a}, not {b}"
    if not isinstance(b, torch.Tensor):
        return "" if a == b else f"{a} where {b} is wanted"
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype} {tuple(a.shape)} where {b.dtype} {tuple(b.shape)} is wanted"
    if not b.is_floating_point() and not b.is_complex():
        return "" if torch.equal(a, b) else f"{a.flatten()[:8]}, not {b.flatten()[:8]}"
    bound = max(bound, BOUNDS.get(b.dtype, 2e-4))
    scale = b.abs()[b.isfinite()].max().item() if b.isfinite().any() else 0.0
    if torch.allclose(a, b, rtol=bound, atol=bound * scale + 1e-6, equal_nan=True):
        return ""
    return f"{a.flatten()[:6].tolist()}, not {b.flatten()[:6].tolist()}"


def bound_of(case: Written) -> float:
    """Of the narrowest floats that a module of mixed types meets."""
    given = {
        x.dtype for x in pytree.tree_leaves(case.calls) if isinstance(x, torch.Tensor)
    }
    text = case.source
    if "bfloat16" in text:
        given.add(torch.bfloat16)
    if "float16" in text.replace("bfloat16", "") or "half()" in text:
        given.add(torch.float16)
    return max((BOUNDS.get(x, 0.0) for x in given), default=0.0)


def exported(
    case: Written, module: Any, rng: np.random.Generator, bench: Bench
) -> Outcome:
    """nanoloom.compile; called with all sizes that torch's own program takes."""
    args, kwargs = copied(case.calls[0])
    own, bound = copy.deepcopy(module), bound_of(case)
    bench.at("export")
    try:
        with torch.no_grad():
            program = torch.export.export(
                copy.deepcopy(module), args, kwargs, dynamic_shapes=case.shapes
            )
    except Exception as error:  # noqa: BLE001 - whatever export raises
        return Outcome("empty", Finding("refused", one_line(error)))
    if rng.random() < 0.2:
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        program = torch.export.load(file)
    bench.at("compile")
    made = nanoloom.compile(program, cache=bench.cache, threads=1)
    for number, given in enumerate([case.calls[0], *case.calls]):
        try:
            called(copy.deepcopy(program).module(), given)
            wanted = called(own, given)
        except Exception:  # noqa: BLE001 - whatever its guards raise
            continue
        bench.at(f"call {number}")
        if reason := differing(called(made, given), wanted, bound):
            return Outcome(
                "finding", Finding("difference", f"export, call {number}: {reason}")
            )
    return Outcome("passed")


def traced(
    case: Written, module: Any, rng: np.random.Generator, bench: Bench
) -> Outcome:
    """torch.compile, with copies, saved states, other strides and calls that repeat."""
    torch._dynamo.reset()
    dynamic = (None, None, True, False)[int(rng.integers(4))]
    own, bound = copy.deepcopy(module), bound_of(case)
    ours = copy.deepcopy(module)
    options = {"cache": bench.cache, "threads": 1}
    fast: Any = torch.compile(ours, backend=backend, dynamic=dynamic, options=options)
    told: list[str] = []
    for number, given in enumerate([case.calls[0], *case.calls]):
        if number > 1 and rng.random() < 0.5:
            given = relaid_call(given, rng)
        try:
            wanted = called(own, given)
        except Exception:  # noqa: BLE001 - whatever eager raises
            break
        wanted += [x.clone() for x in own.buffers()]
        bench.at(f"call {number}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.filterwarnings("error", ".*a bug of nanoloom")
            try:
                found = called(fast, given)
            except Exception as error:  # raised again, unless torch does, too
                if plain_fails(case, module, given, dynamic):
                    return Outcome("empty", Finding("refused", one_line(error)))
                raise inner(error) from error
        found += [x.clone() for x in ours.buffers()]
        told += [str(w.message) for w in caught if issubclass(w.category, ModelWarning)]
        if reason := differing(found, wanted, bound):
            text = f"torch.compile({dynamic}), call {number}: {reason}"
            if plain_differs(module, case, given, dynamic):
                return Outcome("empty", Finding("refused", text))
            return Outcome("finding", Finding("difference", text))
    if told:
        return Outcome("partly", Finding("refused", told[0]))
    return Outcome("passed")


def relaid_call(given: Call, rng: np.random.Generator) -> Call:
    leaves = [x for x in pytree.tree_leaves(given) if isinstance(x, torch.Tensor)]
    places = {x.untyped_storage().data_ptr() for x in leaves}
    if len(places) < len(leaves):  # that share memory, as they are to
        return given
    return pytree.tree_map(
        lambda x: relaid(x, rng) if isinstance(x, torch.Tensor) else x, given
    )


def plain_fails(case: Written, module: Any, given: Call, dynamic: Any) -> bool:
    torch._dynamo.reset()
    other = torch.compile(copy.deepcopy(module), backend="aot_eager", dynamic=dynamic)
    try:
        for each in (case.calls[0], given):
            called(other, each)
    except Exception:  # noqa: BLE001 - whatever Dynamo raises without us
        return True
    return False


def plain_differs(module: Any, case: Written, given: Call, dynamic: Any) -> bool:
    """Whether torch.compile differs from eager with no backend of ours as well."""
    torch._dynamo.reset()
    own = copy.deepcopy(module)
    other = torch.compile(copy.deepcopy(module), backend="aot_eager", dynamic=dynamic)
    for each in (case.calls[0], *case.calls, given):
        try:
            if differing(called(other, each), called(own, each), bound_of(case)):
                return True
        except Exception:  # noqa: BLE001 - whatever Dynamo raises without us
            return True
    return False
