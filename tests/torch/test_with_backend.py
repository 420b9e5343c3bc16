"""torch.compile(backend="nanoloom"): what it takes, what stays, who is told."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]

from nanoloom.errors import InputError, ModelWarning
from nanoloom.torch import graph_program
from nanoloom.torch.backend import nanoloom
from tests.torch import models


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {"cache": tmp_path, "threads": 1}


def compiled(module: Any, options: dict[str, Any], **said: Any) -> Any:
    return torch.compile(module, backend=nanoloom, options=options, **said)


def close(a: Any, b: Any, bound: float = 2e-5) -> bool:
    return a.shape == b.shape and bool((a - b).abs().max() <= bound)


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_sizes(dynamic: bool | None, options: dict[str, Any]) -> None:
    module = models.mlp()
    fast = compiled(module, options, dynamic=dynamic)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        for batch in (4, 1, 7):
            x = torch.randn(batch, 5)
            assert close(fast(x), module(x))


def test_what_is_changed_in_place_is(options: dict[str, Any]) -> None:
    module = models.Cache().eval()
    twin = copy.deepcopy(module)
    fast = compiled(module, options)
    kept = module.keys.data_ptr()
    with torch.no_grad():
        for step in range(3):
            x, at = torch.randn(1, 4), torch.tensor([step])
            assert close(fast(x, at), twin(x, at))
            assert close(module.keys, twin.keys)
    assert module.keys.data_ptr() == kept


class Views(nn.Module):
    def forward(self, x: Any) -> Any:
        return x[1:], x * 2


def test_a_view_of_an_argument_stays_one(options: dict[str, Any]) -> None:
    x = torch.arange(6.0)
    view, doubled = compiled(Views(), options)(x)
    assert view.data_ptr() == x[1:].data_ptr()
    assert doubled.tolist() == (x * 2).tolist()


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor(0))

    def forward(self, x: Any) -> Any:
        self.count += 1
        return x + self.count, x[1:]


def test_a_change_is_no_view(options: dict[str, Any]) -> None:
    module, x = Counter().eval(), torch.randn(3)
    fast = compiled(module, options, fullgraph=True)
    for number in (1, 2):
        assert close(fast(x)[0], x + number)
        assert module.count == number


class Halves(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        y.add_(1)
        return (*x.chunk(2, -1), y.transpose(0, 1)[1:], x.sum())


@pytest.mark.parametrize("dynamic", [False, True])
def test_views_of_open_sizes_lie_in_their_arguments(
    dynamic: bool, options: dict[str, Any]
) -> None:
    fast = compiled(Halves(), options, dynamic=dynamic, fullgraph=True)
    for width in (7, 6):
        given = [torch.randn(4, width) for _ in range(2)]
        twins = [x.clone() for x in given]
        wanted, made = Halves()(*twins), fast(*given)
        for x in (*given, *twins):
            x.mul_(2)  # what lies there is seen in the views
        for number, pair in enumerate(zip(wanted, made, strict=True)):
            assert close(*pair), number


class Moved(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        x[1:] = y[:-1] + 1
        return x * 2


def test_arguments_that_share_memory_later_are_torchs(options: dict[str, Any]) -> None:
    """Dynamo guards what shared memory while it traced, and nothing else."""
    fast = compiled(Moved(), options, dynamic=True)
    with torch.no_grad():
        fast(torch.randn(4, 3), torch.randn(4, 3))
        base = torch.randn(6, 3)
        own = base.clone()
        with pytest.warns(ModelWarning, match="shares memory with .*; torch runs it"):
            made = fast(base[:5], base[1:])
        assert torch.equal(made, Moved()(own[:5], own[1:])) and torch.equal(base, own)
    torch._dynamo.reset()
    whole = compiled(Moved(), options, dynamic=True, fullgraph=True)
    with torch.no_grad():
        whole(torch.randn(4, 3), torch.randn(4, 3))
        with pytest.raises(InputError, match="shares memory"):
            whole(base[:5], base[1:])


class Added(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        x.add_(1)
        return y * 2


def test_arguments_that_share_memory_while_traced_are_torchs(
    options: dict[str, Any],
) -> None:
    """AOTAutograd has them as one, of which their places are constants."""
    fast, base = compiled(Added(), options), torch.randn(9)
    own = base.clone()
    told = "shares memory with .*; torch runs it, on 48 bytes"
    with torch.no_grad(), pytest.warns(ModelWarning, match=told):
        for first in (0, 1, 3, 2):  # Dynamo compiles once
            made = fast(base[first : first + 6], base[2:8])
            wanted = Added()(own[first : first + 6], own[2:8])
            assert torch.equal(made, wanted) and torch.equal(base, own), first
        x, y = torch.randn(2, 5)
        assert torch.equal(fast(x, y), 2 * y)
    torch._dynamo.reset()
    whole = compiled(Added(), options, fullgraph=True)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="shares memory"):
        whole(base[:6], base[2:8])


class Sharing(nn.Module):
    def forward(self, x: Any) -> Any:
        y = (x * 2).view(2, -1)
        first, second = y.unbind(0)
        z = x + 1
        return first, second.view(2, -1), z[1:], x[1:], z, z.t()


def test_results_that_share_memory_do(options: dict[str, Any]) -> None:
    fast = compiled(Sharing(), options, dynamic=True, fullgraph=True)
    for width in (4, 6):
        x = torch.randn(4, width)
        made, wanted = fast(x), Sharing()(x)
        places = [[t.untyped_storage().data_ptr() for t in y] for y in (made, wanted)]
        same = [[a == b for a in each for b in each] for each in places]
        assert same[0] == same[1]
        for ours, theirs in zip(made, wanted, strict=True):
            assert torch.equal(ours, theirs) and ours.stride() == theirs.stride()


DRAWN = {
    "rand": lambda x: torch.rand(3),
    "rand_like": torch.rand_like,
    "randn": lambda x: torch.randn(2, 3),
    "randint": lambda x: torch.randint(0, 100, (3,)),
    "randperm": lambda x: torch.randperm(9),
    "bernoulli": torch.bernoulli,
    "normal": lambda x: torch.normal(x, 1.0),
    "multinomial": lambda x: torch.multinomial(x, 8, replacement=True),
    "poisson": lambda x: torch.poisson(9 * x),
    "dropout": lambda x: nn.functional.dropout(x, 0.5),
    "rrelu": lambda x: nn.functional.rrelu(-x, training=True),
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers_are_those_of_torch(name: str, options: dict[str, Any]) -> None:
    """Others at each call, and drawn as its generator stands."""

    def run(x: Any) -> Any:
        return x * 2, DRAWN[name](x)

    fast, x = compiled(run, options), torch.rand(40) * 0.9
    with pytest.warns(ModelWarning, match="at random"):
        made, again = fast(x)[1], fast(x)[1]
    assert not torch.equal(made, again)
    torch.manual_seed(3)
    made = fast(x)[1]
    torch.manual_seed(3)
    assert torch.equal(made, run(x)[1])


class OfRows(nn.Module):
    def forward(self, x: Any) -> Any:
        summed = torch.vmap(lambda row: (row * row).sum(), in_dims=1)(x)
        return summed, torch.vmap(torch.dot)(x, x.sin())


def test_transforms_of_functions(options: dict[str, Any]) -> None:
    """AOTAutograd traces what vmap makes; a trace before it holds tensors of vmap's."""
    fast, module = compiled(OfRows(), options, fullgraph=True), OfRows()
    for rows in (5, 3, 8):
        x = torch.randn(rows, 4)
        with torch.no_grad():
            assert all(map(close, fast(x), module(x)))


def test_a_graph_behind_autograd_has_numbers_of_its_own(
    options: dict[str, Any],
) -> None:
    def choose(x: Any) -> Any:
        return x[1:], x[torch.tensor([0, -1])] * torch.tensor(0.5)

    x = torch.arange(6.0)
    view, chosen = compiled(choose, options, fullgraph=True)(x)
    assert view.data_ptr() == x[1:].data_ptr()
    assert chosen.tolist() == [0, 2.5]


def test_autocast_inside_of_a_module(options: dict[str, Any]) -> None:
    module = models.mlp().requires_grad_(False)

    def run(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            y = module(x)
        return y, module(x)

    x = torch.randn(3, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        made = compiled(run, options, fullgraph=True)(x)
    for ours, wanted, bound in zip(made, run(x), (0.02, 1e-6), strict=True):
        assert ours.dtype == wanted.dtype and close(ours, wanted, bound)


class Alien(nn.Module):
    """The middle has no place in a program: its eigenvalues are complex."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        y = torch.tanh(self.first(x))
        size = torch.linalg.eigvals(y.t() @ y).abs().sum()
        return self.last(torch.relu(x * size))


def test_a_part_that_stays_with_torch_is_reported(options: dict[str, Any]) -> None:
    module, x = Alien().eval(), torch.randn(4, 4)
    fast = compiled(module, options)
    with torch.no_grad(), pytest.warns(ModelWarning) as told:
        made = fast(x)
    with torch.no_grad():
        assert close(made, module(x), 1e-3)
    (line,) = {str(w.message) for w in told if "eigvals" in str(w.message)}
    assert f"{Path(__file__).name}:" in line
    assert "is not known; torch runs it, on 96 bytes" in line
    assert not [w for w in told if "linear" in str(w.message)]


def test_fullgraph_makes_it_an_error(options: dict[str, Any]) -> None:
    fast = compiled(Alien().eval(), options, fullgraph=True)
    with (
        torch.no_grad(),
        pytest.raises(Exception, match=r"linalg_eig\.default is not known"),
    ):
        fast(torch.randn(4, 4))


def test_a_graph_that_is_trained_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"the graph would be trained: .*no_grad\(\)"):
        compiled(models.mlp(), options)(torch.randn(4, 5))


def test_inference_mode_and_frozen_modules(options: dict[str, Any]) -> None:
    module, x = models.mlp(), torch.randn(4, 5)
    with torch.inference_mode():
        assert close(compiled(module, options)(x), module(x))
    torch._dynamo.reset()
    module.requires_grad_(False)
    assert close(compiled(module, options)(x), module(x))


def test_autocast(options: dict[str, Any]) -> None:
    module, x = models.mlp(), torch.randn(4, 5)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        made, wanted = compiled(module, options)(x), module(x)
    assert made.dtype == wanted.dtype
    assert close(made.float(), wanted.float(), 2.0**-7)


def test_weights_are_read_once_until_they_change(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    usual = graph_program.Settings.program

    def counted(self: Any, model: object) -> Any:
        made.append(model)
        return usual(self, model)

    monkeypatch.setattr(graph_program.Settings, "program", counted)
    module = models.mlp()
    fast = compiled(module, options, dynamic=True)
    with torch.no_grad():
        for batch in (4, 3, 6):
            fast(torch.randn(batch, 5))
        assert len(made) == 1
        module[0].weight.mul_(3)
        x = torch.randn(5, 5)
        assert close(fast(x), module(x))
    assert len(made) == 2


def test_an_option_that_there_is_not(options: dict[str, Any]) -> None:
    fast = compiled(models.mlp(), {**options, "threds": 2})
    with torch.no_grad(), pytest.raises(Exception, match="there is no option 'threds'"):
        fast(torch.randn(4, 5))


def test_a_graph_that_computes_nothing(options: dict[str, Any]) -> None:
    """Its argument as it is, as torch gives it; and such a one beside a size."""
    x = torch.randn(3, 4)
    for made in (lambda x: x.contiguous(), lambda x: (x.contiguous(), x.shape[0])):
        fast = compiled(made, options, fullgraph=True, dynamic=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ModelWarning)
            for _ in range(2):
                given = fast(x)
                assert (given[0] if isinstance(given, tuple) else given) is x
