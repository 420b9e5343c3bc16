"""Programs on threads whose stacks are small: temporaries lie elsewhere."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nanoloom
from nanoloom.binary.objects import emit, emit_assembly
from nanoloom.binary.stack_frames import (
    FRAME_BYTES,
    largest_frame,
    may_exceed,
    require_small,
)
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.frontend.inputs import InputSpec, random_inputs
from nanoloom.target import TARGETS
from tests.runtime.native import c_library
from tests.runtime.networks import NETWORKS

HERE = Path(__file__).parent
MOST = 64 * 1024  # bytes of a thread's stack
X86: dict[str, Any] = {"triple": "x86_64-unknown-linux-gnu", "cpu": "x86-64"}


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory, cache: Cache) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("stacks")
    names = ["depth_of_run", "on_two_stacks"]
    library = c_library(HERE / "small_stack.c", folder, cache, names)
    library.depth_of_run.restype = ctypes.c_int64
    return library


def addresses(arrays: list[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def depth(
    stacks: ctypes.CDLL, file: Path, inputs: list[np.ndarray], outputs: list[np.ndarray]
) -> int:
    """The most bytes of a stack that a saved model's two threads take."""
    model = ctypes.CDLL(str(file))
    model.nanoloom_model_create_on.restype = ctypes.c_void_p
    others = ctypes.c_int64()
    handle = ctypes.c_void_p(
        model.nanoloom_model_create_on(stacks.on_two_stacks, ctypes.byref(others))
    )
    given = [addresses(inputs), addresses(outputs)]
    own = stacks.depth_of_run(model.nanoloom_model_run, handle, *given)
    model.nanoloom_model_destroy(handle)
    assert own >= 0
    return max(own, others.value)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("name", NETWORKS)
def test_stacks_of_64_kib_are_enough(
    name: str, stacks: ctypes.CDLL, tmp_path: Path
) -> None:
    """And the numbers are those of a single thread with a large one."""
    cache = Cache(tmp_path / "cache")
    program = nanoloom.compile(NETWORKS[name](), threads=1, cache=cache)
    specs = [InputSpec(x.name, x.shape, x.dtype) for x in program.inputs]
    inputs = random_inputs(specs, seed=4)
    wanted = program(inputs)
    file = program.save(tmp_path / "model.so")
    got = [np.empty_like(array) for array in wanted.values()]
    taken = depth(stacks, file, [inputs[x.name] for x in program.inputs], got)
    assert 0 < taken <= MOST
    for array, other in zip(got, wanted.values(), strict=True):
        assert array.tobytes() == other.tobytes()


# ---- frames --------------------------------------------------------------------------


def function(size: int) -> str:
    return f"""
    declare void @use(ptr)
    define void @f() {{
      %room = alloca [{size} x i8], align 64
      call void @use(ptr %room)
      ret void
    }}"""


RISCV = {
    "triple": "riscv64-unknown-linux-gnu",
    "cpu": "generic-rv64",
    "features": "+m,+a,+f,+d,+c,+v",
    "abi": "lp64d",
    "code_model": "medium",
}
ARM = {"triple": "aarch64-unknown-linux-gnu", "cpu": "generic", "features": "+sve"}
POWER = {"triple": "powerpc64le-unknown-linux-gnu", "cpu": "pwr8"}
FRAMES = {target.triple: target.isa.frame for target in TARGETS}
MACHINES = pytest.mark.parametrize(
    "machine",
    [X86, ARM, RISCV, POWER],
    ids=lambda machine: machine["triple"].split("-")[0],
)


@MACHINES
@pytest.mark.parametrize("size", [64, FRAME_BYTES, 5 << 20])
def test_frames_are_found(size: int, machine: dict[str, str]) -> None:
    code = emit(function(size), **machine)
    frame = FRAMES[machine["triple"]]
    found = largest_frame(emit_assembly(function(size), **machine), frame)
    if machine is X86:
        assert size <= found <= size + 128
        assert may_exceed(code, frame) == (found > FRAME_BYTES)
    else:
        unit = 0 if machine is not POWER else frame.unit  # else whole pages of it
        least = size if size >= FRAME_BYTES else 0
        assert least <= found <= (least and least + unit)
        assert may_exceed(code, frame) == (size >= FRAME_BYTES)


@MACHINES
def test_a_large_frame_is_a_bug(machine: dict[str, str]) -> None:
    text, frame = function(2 * FRAME_BYTES), FRAMES[machine["triple"]]
    with pytest.raises(RuntimeError, match=r"a kernel takes .* bytes of stack"):
        words = partial(emit_assembly, text, **machine)
        require_small(emit(text, **machine), words, frame)
    with pytest.raises(Error, match="bytes of stack, 32768 at most"):
        require_small(emit(text, **machine), words, frame, given=True)
    less = function(FRAME_BYTES // 2)
    require_small(emit(less, **machine), partial(emit_assembly, less, **machine), frame)
