"""Numbers of float64 keep their bits, integers wrap around and round down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports] - an extra
from torch._subclasses.fake_tensor import (  # pyright: ignore[reportMissingImports] - an extra
    FakeTensorMode,
)
from torch.nn import functional as F  # pyright: ignore[reportMissingImports] - an extra

import nanoloom
from nanoloom.errors import Unsupported
from nanoloom.torch.backend import nanoloom as backend


def compiled(function: Any, folder: Path) -> Any:
    torch._dynamo.reset()
    torch.manual_seed(3)
    options = {"cache": folder, "threads": 1}
    return torch.compile(function, backend=backend, options=options, fullgraph=True)


def bent(x: torch.Tensor) -> list[torch.Tensor]:
    """With numbers of which 32 bits are too few."""
    flat = x.reshape(4, 7)
    return [
        F.leaky_relu(flat, 0.2), F.elu(flat, 0.3), F.hardsigmoid(flat),
        F.layer_norm(flat, (7,)), F.rms_norm(flat, (7,), eps=1e-3),
        F.group_norm(x, 2, eps=1e-3), F.instance_norm(x, eps=0.1),
        F.batch_norm(x, x[0, :, 0], x[0, :, 1].abs(), eps=1e-3),
        F.interpolate(x, scale_factor=1.7, mode="linear"), torch.log2(x.abs()),
        torch.log10(x.abs()), torch.exp2(x),
    ]  # fmt: skip


def test_numbers_of_float64_have_all_their_bits(tmp_path: Path) -> None:
    fast = compiled(bent, tmp_path)
    x = torch.randn(1, 4, 7, dtype=torch.float64)
    for wanted, made in zip(bent(x), fast(x), strict=True):
        assert (wanted - made).abs().max() <= 1e-13 * wanted.abs().max()


def whole(x: torch.Tensor) -> list[torch.Tensor]:
    return [x // 3, x // -3, 5 // (x | 1), x % 3, x % -3, -x, 0 - x, x - 1, x * x]


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8])
def test_integers_of_all_values(kind: Any, tmp_path: Path) -> None:
    x = torch.arange(256).to(kind)
    made = compiled(whole, tmp_path)(x)
    for number, pair in enumerate(zip(whole(x), made, strict=True)):
        assert pair[0].dtype == pair[1].dtype and torch.equal(*pair), number


def shifted(x: torch.Tensor) -> list[torch.Tensor]:
    far = torch.arange(256) % 11 - (2 if x.dtype.is_signed else 0)
    far = far.to(x.dtype)
    square, wide = x.reshape(16, 16), x.reshape(4, 64)
    matrices = x[:60].reshape(3, 4, 5)
    return [
        x << far, x >> far, x << 3, x >> 2, square @ square, x**2, x.pow(3),
        torch.nn.functional.linear(wide, wide), torch.addmm(square, square, square),
        F.bilinear(x[:24].reshape(2, 3, 4), x[30:60].reshape(2, 3, 5), matrices, x[:3]),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.int32])
def test_shifts_products_and_powers_of_all_values(kind: Any, tmp_path: Path) -> None:
    """Shifts by less than nothing and by more than all bits, as torch has them."""
    x = torch.arange(-128, 128).to(kind) * (1 if kind != torch.int32 else 16777259)
    made = compiled(shifted, tmp_path)(x)
    for number, pair in enumerate(zip(shifted(x), made, strict=True)):
        assert pair[0].dtype == pair[1].dtype and torch.equal(*pair), number


def resized(x: torch.Tensor) -> list[torch.Tensor]:
    """By factors that are no whole numbers: none of ONNX's ways is torch's for all."""
    by = {"scale_factor": (1.7, 0.6)}
    corners = {"align_corners": True, **by}
    return [
        F.interpolate(x, mode="nearest", **by), F.interpolate(x, scale_factor=0.7),
        F.interpolate(x, mode="bilinear", **corners),
        F.interpolate(x, mode="bicubic", **corners),
        F.interpolate(x[0], scale_factor=2.3, mode="linear", align_corners=True),
    ]  # fmt: skip


def test_images_are_resized_by_parts_of_a_number(tmp_path: Path) -> None:
    fast = compiled(resized, tmp_path)
    x = torch.randn(1, 2, 7, 9)
    for wanted, made in zip(resized(x), fast(x), strict=True):
        torch.testing.assert_close(wanted, made, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_exponentials_less_one_of_all_sizes(kind: Any, tmp_path: Path) -> None:
    numbers = [-1e-4, 1e-4, 0.3, -0.3, 5, -7, -40, 88, -88, -1e4, -1e30, 1e30]
    x = torch.tensor([*numbers, torch.inf, -torch.inf, torch.nan]).to(kind)
    made = compiled(lambda x: (x.expm1(), F.celu(x), F.selu(x)), tmp_path)(x)
    eps = 4 * torch.finfo(kind).eps
    for wanted, found in zip((x.expm1(), F.celu(x), F.selu(x)), made, strict=True):
        torch.testing.assert_close(found, wanted, rtol=eps, atol=0, equal_nan=True)


class Region(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            product = torch.tensordot(x, x.T, 1)
        return product, product + 1


def test_results_of_an_autocast_region_keep_their_types() -> None:
    """torch's decompositions give f32 where the operator is made of others."""
    x = torch.randn(3, 4)
    found, wanted = nanoloom.compile(Region().eval(), (x,))(x), Region()(x)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2.0**-6, atol=2.0**-6)


def divided(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
    both = torch.gcd(a, b)
    often = [(both % 5).mode(dim, keepdim=True).values for dim in (0, 1)]
    return [both, torch.lcm(a, b), *often]


def test_divisors_of_integers_and_which_is_most_often(tmp_path: Path) -> None:
    """Also of integers of two types."""
    a, b = torch.arange(-12, 13)[:, None], torch.arange(-9, 10)
    for narrow in (torch.int64, torch.int8):
        found = compiled(divided, tmp_path)(a, b.to(narrow))
        for wanted, ours in zip(divided(a, b.to(narrow)), found, strict=True):
            assert wanted.dtype == ours.dtype and torch.equal(wanted, ours)


def bits(x: torch.Tensor) -> list[torch.Tensor]:
    whole = x.view(torch.int32)
    return [whole, whole ^ 1, (whole & 0x7FFFFFFF).view(torch.float32), x.T]


@pytest.mark.parametrize("few", [False, True])
def test_bits_as_numbers_of_another_type(few: bool, tmp_path: Path) -> None:
    """Results that are views of arguments, alone (few) and beside others."""
    x = torch.randn(3, 4)

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return bits(x)[::3] if few else bits(x)

    for wanted, ours in zip(
        function(x), compiled(function, tmp_path)(x), strict=True
    ):  # fmt: skip
        assert wanted.dtype == ours.dtype and torch.equal(wanted, ours)


def parts(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
    signs = [a.signbit(), torch.copysign(a.abs(), b).signbit()]
    return [*torch.frexp(a), torch.nextafter(a, b), torch.pdist(b), *signs]


def test_parts_and_neighbours_of_floats(tmp_path: Path) -> None:
    """Denormals, zeros of both signs, infinities and NaN."""
    x = torch.tensor([0.0, -0.0, 1.0, -3.5, 1e-40, -1e-45, 1e30, 2.0**-126])
    x = torch.cat([x, torch.tensor([float("inf"), -float("inf"), float("nan")])])
    a, b = (t.contiguous() for t in torch.broadcast_tensors(x[:, None], x))
    for wanted, ours in zip(parts(a, b), compiled(parts, tmp_path)(a, b), strict=True):
        same = (wanted == ours) | (wanted.isnan() & ours.isnan())
        assert wanted.dtype == ours.dtype and same.all()


def test_modes_are_where_their_last_one_is(tmp_path: Path) -> None:
    fast = compiled(lambda x: [*x.mode(0), *x.mode(1, keepdim=True)], tmp_path)
    x = torch.randint(-2, 2, (7, 9), dtype=torch.int32)
    for wanted, made in zip(
        [*x.mode(0), *x.mode(1, keepdim=True)], fast(x), strict=True
    ):
        assert torch.equal(wanted, made)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("said", [{"size": (9, 23)}, {"scale_factor": (1.7, 2.0)}])
def test_resized_bytes_end_at_0_and_255(mode: str, said: Any, tmp_path: Path) -> None:
    """torch has weights of 16 bits: a step away for each axis, at a few places."""

    def resized(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, mode=mode, **said)

    fast = compiled(resized, tmp_path)
    for _ in range(3):
        x = torch.randint(0, 2, (2, 3, 7, 10), dtype=torch.uint8) * 255
        found, wanted = fast(x), resized(x)
        moved = (found.int() - wanted.int()).abs()
        assert found.dtype == torch.uint8 and moved.max() <= 2
        assert (moved > 0).double().mean() < 0.1


def joined(x: torch.Tensor, at: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [
        torch.add(x, y, alpha=False), torch.add(x, y, alpha=True),
        x.scatter_add(0, at, y), x.index_add(0, at, y, alpha=False),
        x.index_add(0, at, y, alpha=True),
    ]  # fmt: skip


def test_sums_of_truths_say_whether_any_is_true(tmp_path: Path) -> None:
    x, y = (torch.tensor(t).bool() for t in ([0, 1, 0, 1, 0], [1, 1, 1, 0, 0]))
    at = torch.tensor([0, 1, 0, 3, 3])
    pairs = zip(joined(x, at, y), compiled(joined, tmp_path)(x, at, y), strict=True)
    for number, (wanted, ours) in enumerate(pairs):
        assert wanted.dtype == ours.dtype and torch.equal(wanted, ours), number


class Pulled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.func.vjp(torch.cos, x)[1](x)[0]


@pytest.mark.parametrize("module", [Pulled(), torch.nn.Linear(3, 2)])
def test_what_stands_in_a_trace_for_a_weight_has_no_numbers(module: Any) -> None:
    mode, x = FakeTensorMode(allow_non_fake_inputs=True), torch.randn(3)
    if weights := dict(module.named_parameters()):
        x = mode.from_tensor(x)
        for name in weights:
            setattr(module, name, torch.nn.Parameter(mode.from_tensor(weights[name])))
    with pytest.raises(Unsupported, match=r"weight .* has no numbers"):
        nanoloom.compile(torch.export.export(module, (x,)))


def totals(x: torch.Tensor) -> list[torch.Tensor]:
    kinds = (None, torch.int32, torch.int16, torch.uint8)
    ways = (torch.sum, torch.prod, torch.cumsum, torch.cumprod)
    truths = [way(x, 0, dtype=torch.bool) for way in ways[:2]]
    return [*truths, *(way(x, 0, dtype=kind) for way in ways for kind in kinds)]


@pytest.mark.parametrize("kind", [torch.int32, torch.bool])
def test_totals_in_a_type_that_is_asked_for(kind: Any, tmp_path: Path) -> None:
    """Those of short integers wrap around."""
    x = torch.arange(-20, 22).reshape(6, 7).to(kind)
    pairs = zip(totals(x), compiled(totals, tmp_path)(x), strict=True)
    for number, (wanted, ours) in enumerate(pairs):
        assert wanted.dtype == ours.dtype and torch.equal(wanted, ours), number


class Attended(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(x, x, x)


def test_a_result_that_no_import_computes_is_refused() -> None:
    program = torch.export.export(Attended(), (torch.randn(1, 2, 3, 4),))
    with pytest.raises(Unsupported, match=r"output .* does not compute"):
        nanoloom.compile(program)
