"""Steps that read or write at places, and those that change what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.modules.draw import Draw


def indices(d: Draw, size: str, negative: bool = True) -> str:
    """A vector or a tensor of indices below a size."""
    way = d.number(0, 4)
    if way == 0:
        return f"torch.arange({size}).flip(0)"
    if way == 1:
        return f"torch.tensor({d.pick([[0], [0, 0], [1, 0], [0, 1, 0, 1]])})"
    if way == 2 and negative:
        return f"torch.tensor({d.pick([[-1, 0], [-1, -2, 0], [[0, -1], [1, 0]]])})"
    found = d.var("int")
    return f"torch.remainder({found}.long(), {size})"


def subject(d: Draw, least: int = 1) -> tuple[str, int, str]:
    """A variable, one of its axes, and the size of that."""
    x = d.var("", least)
    axis = d.axis()
    return x, axis, f"{x}.shape[{axis}]"


def one_axis(d: Draw) -> str:
    x, axis, size = subject(d)
    rank = d.rank(x)
    front = ":, " * (axis % rank)
    return f"{x}[{front}{indices(d, size)}]"


def two_axes(d: Draw) -> str:
    x = d.var("", 2)
    a, b = (indices(d, f"{x}.shape[{i}]") for i in (0, 1))
    if d.rank(x) > 2 and d.flag():
        c = indices(d, f"{x}.shape[2]")
        return f"{x}[{a}, :, {c}]" if d.flag() else f"{x}[:, {b}, {c}]"
    return f"{x}[{a}, {b}]"


def mixed(d: Draw) -> str:
    x = d.var("", 2)
    way = d.pick(
        [
            "[{a}, 1:]",
            "[0, {b}]",
            "[None, {a}]",
            "[:, {b}, None]",
            "[{a}, 0]",
            "[..., {c}]",
            "[1:, {b}]",
            "[-1, ..., {c}]",
        ]
    )
    sizes = {"a": 0, "b": 1, "c": -1}
    each = {n: indices(d, f"{x}.shape[{i}]") for n, i in sizes.items()}
    return x + way.format(**each)


def index_select(d: Draw) -> str:
    x, axis, size = subject(d)
    return f"{x}.index_select({axis}, {indices(d, size, False)}.flatten())"


def gather(d: Draw) -> str:
    x, axis, size = subject(d)
    at = f"torch.remainder({d.beside('int', same=True)}.long(), {size})"
    if d.flag():
        at = f"{x}.argsort({axis})"
    if d.chance(0.3):
        at += "[..., :1]"
    word = d.pick(["gather({axis}, {at})", "take_along_dim({at}, {axis})"])
    return f"{x}.{word.format(axis=axis, at=at)}"


def scatter(d: Draw) -> str:
    x, axis, size = subject(d)
    at = f"torch.remainder({d.beside('int', same=True)}.long(), {size})"
    if d.flag():
        at = f"{x}.argsort({axis})"
    other = f"{d.beside(same=True)}.to({x}.dtype)"
    if d.chance(0.3):
        at = f"{at}.narrow({axis}, 0, 1)"
    word = d.pick(
        [
            "scatter({axis}, {x}.argsort({axis}), {other})",
            "scatter({axis}, {at}, 2)",
            "scatter_add({axis}, {at}, {other})",
            "scatter_reduce({axis}, {at}, {other}, 'amax', include_self={flag})",
            "scatter_reduce({axis}, {at}, {other}, 'sum', include_self={flag})",
            "scatter_reduce({axis}, {at}, {other}, 'mean', include_self={flag})",
            "scatter_reduce({axis}, {at}, {other}, 'prod', include_self={flag})",
        ]
    )
    said = {"axis": axis, "at": at, "other": other, "flag": d.flag(), "x": x}
    return f"{x}.{word.format(**said)}"


def along(d: Draw) -> str:
    """index_add, index_copy, index_fill."""
    x, axis, size = subject(d)
    at = f"torch.arange({size}).flip(0)"
    other = f"{d.beside(same=True)}.to({x}.dtype)"
    word = d.pick(
        [
            f"index_add({axis}, {at} // 2, {other}, alpha={d.number(1, 2)})",
            f"index_copy({axis}, {at}, {other})",
            f"index_fill({axis}, {at}[:2], 3)",
            f"index_reduce({axis}, {at} // 2, {other}, 'amax')",
        ]
    )
    return f"{x}.{word}"


def put(d: Draw) -> str:
    x, _, _ = subject(d)
    at = indices(d, f"{x}.shape[0]")
    value = d.pick(["torch.tensor(2)", f"{x}[:1]", f"{x}[0]", "torch.tensor(0.5)"])
    added = d.flag()
    if not added:
        at = f"torch.arange({x}.shape[0])[::2]"
    value = f"{value}.to({x}.dtype)"
    return f"{x}.index_put(({at},), {value}, accumulate={added})"


def by_mask(d: Draw) -> str:
    x = d.var()
    way = d.pick(
        [
            "{x}[{m}].sum()",
            "torch.masked_select({x}, {m}).sum()",
            "{x}.put(torch.tensor([0, -1]), {x}.flatten()[:2])",
            "{x}.masked_scatter({m}, {x}.flip(0))",
            "torch.nonzero({m}).sum(0)",
            "torch.where({m})[0].sum()",
            "{x}.index_put(({m},), torch.tensor(1).to({x}.dtype))",
        ]
    )
    return way.format(x=x, m=f"({x} > 0)")


def slices_put(d: Draw) -> str:
    x, axis, _ = subject(d)
    word = d.pick(
        [
            f"slice_scatter({x}.narrow({axis}, 0, 1) * 2, {axis}, 1, 2)",
            f"select_scatter({x}.select({axis}, 0) * 2, {axis}, -1)",
            f"slice_scatter({x}.narrow({axis}, 0, 2), {axis}, 0, 4, 2)",
        ]
    )
    if d.rank(x) > 1 and d.flag():
        word = f"diagonal_scatter(torch.zeros_like({x}.diagonal()))"
    return f"torch.clone({x}).{word}"


def sorted_places(d: Draw) -> str:
    x = d.var("float")
    rows = "torch.tensor([-1.0, 0.0, 0.5, 2.0])"
    if d.flag():
        return f"torch.bucketize({x}, {rows}.to({x}.dtype), right={d.flag()})"
    return f"torch.searchsorted({rows}.to({x}.dtype), {x}, out_int32={d.flag()})"


def is_in(d: Draw) -> str:
    return f"torch.isin({d.var('int')}, torch.tensor([1, 3, -2]))"


PLACES = (
    one_axis,
    one_axis,
    two_axes,
    two_axes,
    mixed,
    mixed,
    index_select,
    gather,
    gather,
    scatter,
    scatter,
    along,
    along,
    put,
    put,
    by_mask,
    slices_put,
    sorted_places,
    is_in,
)

# "!" in front: a line of its own.  {n} the first variable is what is changed.
WRITES = (
    "!{n}.add_({bc})",
    "!{n}.mul_(2)",
    "!{n1}[0] = {x}",
    "!{n1}[..., 1:] = {z}",
    "!{n}.copy_({bc})",
    "!{n}.zero_()",
    "!{n}.clamp_(-1, 1)",
    "!{i}.logical_not_()",
    "!{n2}.transpose(0, -1).add_(1)",
    "!{n}.unsqueeze(0).mul_(2)",
    "!{n1}[::2].sub_(1)",
    "!{n2}.fill_diagonal_(1)",
    "!{n2}.diagonal().add_(1)",
    "!{n1}.view(-1)[1:].fill_(3)",
    "!{n1}.select({d}, 0).copy_(torch.tensor(0.5))",
    "!{n}.masked_fill_({bb}, 1)",
    "!{n1}[[0, -1]] = 1",
    "!{n1}[torch.tensor([0])] += 2",
    "!{n}.neg_()",
    "!F.relu({f}, True)",
    "!{n1}[-1] = {n1}[0]".replace("{n1}[0]", "0"),
    "!{n2}[:, 0] *= 2",
    "!{n2}[1:, :-1] = 0",
    "!{n1}.narrow({d}, 0, 1).add_(5)",
    "!{n}.squeeze().add_(1)",
    "!{f}.sigmoid_()",
    "!{n1}.index_fill_({d}, torch.tensor([0]), 2)",
    "!{f}.tanh_()",
    "!{t1}[..., ::2] = 1",
    "!{n}.detach().add_(1)",
    "!{n}.reshape(-1)[:1] = 7",
    "!{n1}.flip(0).add_(1)",
    "!{n}.expand(1, *[-1] * 0).add_(1)",
    "!{n1}.chunk(2)[0].mul_(3)",
    "!{n2}[..., [0]] = 4",
    "!{n2}.T[0] += 1",
    "!{f1}.cumsum_(0)",
    "!{n}.fill_({z})",
    "!{n}.lerp_({same}, 0.5)",
    "!{n1}.unbind()[-1].zero_()",
    "!{n1}[1:] = 1",
    "!{n}.pow_(2)",
    "!{n}.floor_divide_(2)",
)


def write_of_itself(d: Draw) -> str:
    """A part becomes another part of the same tensor."""
    x, axis, size = subject(d)
    way = d.pick(
        [
            "{x}.copy_({x}.flip({axis}))",
            "{x}.index_copy_({axis}, torch.tensor([0]), {x}.narrow({axis}, 1, 1))",
            "{x}[0] = {x}[-1]",
            "{x}[..., 0] = {x}[..., -1] + 1",
            "{x}.add_({x}.roll(1, {axis}))",
            "{x}.index_add_({axis}, torch.tensor([0, 0]), {x}.narrow({axis}, 0, 2))",
            "{x}.scatter_({axis}, {x}.argsort({axis}), {x}.clone())",
            "{x}.narrow({axis}, 0, 2).copy_({x}.narrow({axis}, 1, 2).clone())",
            "{x}.index_put_(({at},), torch.tensor(1).to({x}.dtype), accumulate=True)",
            "{x}[({x} > 0)] = 2",
            "{x}[..., 1:] = {x}[..., :-1].clone()",
            "{x}[1:] += {x}[:-1].clone()",
        ]
    )
    at = indices(d, f"{x}.shape[0]")
    return "!" + way.format(x=x, axis=axis, size=size, at=at)


def write_of_buffer(d: Draw) -> str:
    """A buffer of the module that counts, sums or keeps rows."""
    way = d.number(0, 3)
    if way == 0:
        b = d.held("torch.tensor(0)", buffer=True)
        d.do(f"{b} += 1")
        return f"{d.var()} + {b}"
    if way == 1:
        b = d.held("torch.randn(())", buffer=True)
        d.do(f"{b}.mul_(0.9).add_({d.var('float')}.mean())")
        return f"{b} * 2"
    x = d.var("float", 1)
    width = d.width(x, -1)
    b = d.held(f"torch.randn(4, {width})", buffer=True)
    row = f"{x}.reshape(-1, {width})[0]"
    if way == 2:
        d.do(f"{b}[torch.tensor([{d.number(-4, 3)}])] = {row}")
    else:
        d.do(f"{b}.copy_(torch.cat([{b}[1:], {row}[None]]))")
    return f"{b} * 2" if d.flag() else f"{b}[1:]"


WRITING = (*WRITES, *[write_of_itself] * 8, *[write_of_buffer] * 6)
