"""Functions that ONNX does not have are as right as in float64, in their tails too."""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports] - an extra

import nanoloom


class Functions(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        special = torch.special
        return (
            torch.erfc(x), special.ndtr(-x), special.log_ndtr(x), torch.lgamma(x),
            torch.polygamma(2, x), special.erfinv(x / 8), special.i0(x),
            torch.digamma(x), x.bfloat16().erfc(),
        )  # fmt: skip


def test_special_functions() -> None:
    x = torch.linspace(-7.9, 7.9, 61)
    found = nanoloom.compile(Functions().eval(), (x,))(x)
    wanted = Functions()(x.double())
    # torch's own Phi is a difference from 1, and its polygamma of even order loses
    # digits near its zeros.
    exact = torch.special.erfc(x.double() * 0.5**0.5) / 2
    wanted = (wanted[0], exact, *wanted[2:])
    for place, (ours, theirs) in enumerate(zip(found[:8], wanted[:8], strict=True)):
        torch.testing.assert_close(
            ours.double(), theirs, rtol=2e-6, atol=1e-45, msg=f"result {place}"
        )
    assert (found[0][-1] > 0) and (found[0][-1] < 1e-28)
    rounded = x.bfloat16().double().erfc().bfloat16()
    torch.testing.assert_close(found[8], rounded, rtol=2.0**-7, atol=0.0)


class Signs(torch.nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        floors = (x // y, torch.div(x, y, rounding_mode="floor"))
        return (x.sign(), x.sgn(), x.half().sign(), x.int().sign(), *floors)


def test_signs_of_nan_and_of_zero_are_those_of_torch() -> None:
    """The sign of NaN is 0, and 0 as a floor has the sign of the quotient."""
    numbers = torch.tensor([torch.nan, -torch.inf, -3.0, -0.0, 0.0, 0.5, torch.inf])
    x, y = torch.cartesian_prod(numbers, numbers).unbind(1)
    module = Signs().eval()
    found = nanoloom.compile(module, (x, y), threads=1)(x, y)
    for ours, theirs in zip(found, module(x, y), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
        signs = [each.signbit() | each.isnan() for each in (ours, theirs)]
        assert torch.equal(*signs)
