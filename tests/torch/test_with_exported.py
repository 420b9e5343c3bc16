"""What an exported program says beside its operators: who owns and changes what."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]
from torch.export import Dim  # pyright: ignore[reportMissingImports]

import nanoloom
from nanoloom.cli.main import main
from nanoloom.errors import InputError, Unsupported
from nanoloom.frontend.torch.exported import import_exported
from tests.torch import models


class Owner(nn.Module):
    """Tied weights, a buffer that is not saved, a constant, numbers, an alias."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(40, 32)
        self.out = nn.Linear(32, 40, bias=False)
        self.out.weight = self.embed.weight
        self.register_buffer("scale", torch.full((32,), 2.0), persistent=False)
        self.shift = torch.tensor(0.5)

    def forward(self, ids: Any, factor: Any) -> Any:
        rows = self.embed(ids) * self.scale * factor + self.shift
        doubled = torch.cat([rows, rows], 1)
        return {"logits": self.out(doubled), "count": ids.shape[1] * 2,
                "flat": doubled.view(-1)[1:], "factor": factor}  # fmt: skip


@pytest.fixture
def owner() -> Any:
    torch.manual_seed(0)
    return Owner().eval()


def example(batch: int = 2, length: int = 3) -> tuple[Any, Any]:
    return torch.arange(batch * length).reshape(batch, length), torch.tensor(1.5)


def exported(module: Any) -> Any:
    open_ids = {0: Dim("batch"), 1: Dim("length")}
    with torch.no_grad():
        return torch.export.export(module, example(), dynamic_shapes=(open_ids, None))


def test_weights_are_the_modules_own_memory_and_tied_ones_are_one(owner: Any) -> None:
    model = import_exported(exported(owner)).model
    large = [
        x.const_value for x in model.graph.initializers.values()
        if x.const_value is not None and x.const_value.size == 40 * 32
    ]  # fmt: skip
    (tensor,) = large
    assert tensor.numpy().ctypes.data == owner.embed.weight.data_ptr()


def test_no_size_that_was_seen_is_kept(owner: Any) -> None:
    """All sizes are computed of shapes: 2, 3 and their products are in no constant."""
    imported = import_exported(exported(owner))
    (ids, _) = imported.model.graph.inputs
    assert ids.shape is not None
    assert not any(isinstance(d, int) for d in ids.shape)
    vectors = [
        x.const_value.numpy() for x in imported.model.graph.initializers.values()
        if x.const_value is not None and x.const_value.dtype.is_integer()
    ]  # fmt: skip
    assert not any(set(v.ravel().tolist()) & {3, 6, 12} for v in vectors)


@pytest.mark.parametrize(("batch", "length"), [(2, 3), (1, 1), (3, 5), (0, 4)])
def test_structure_sizes_and_numbers(
    owner: Any, batch: int, length: int, tmp_path: Path
) -> None:
    program = nanoloom.compile(exported(owner), cache=tmp_path, threads=1)
    args = example(batch, length)
    made, wanted = program(*args), owner(*args)
    assert made.keys() == wanted.keys()
    assert made["count"] == 2 * length
    assert made["factor"] is args[1]
    for name in ("logits", "flat"):
        assert made[name].shape == wanted[name].shape
        bound = 34 * 2.0**-24 * 32 * 4 * 4  # (K + 2) * eps * sums of |a||b|
        assert torch.allclose(made[name], wanted[name], rtol=0, atol=bound)


def test_a_cache_is_written_in_place_and_any_strides_do(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = models.Cache().eval()
    twin = copy.deepcopy(module)
    args = torch.randn(4, 1).t(), torch.tensor([0])
    program = nanoloom.compile(module, args, cache=tmp_path, threads=1)
    kept = module.keys.data_ptr()
    for step in range(3):
        x = torch.randn(4, 1).t()
        made, wanted = program(x, torch.tensor([step])), twin(x, torch.tensor([step]))
        assert torch.allclose(made, wanted, rtol=0, atol=1e-5)
        assert torch.allclose(module.keys, twin.keys, rtol=0, atol=1e-6)
    assert module.keys[:3].abs().sum() > 0
    assert module.keys.data_ptr() == kept


class Adder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.ones(4), requires_grad=False)

    def forward(self, x: Any, y: Any) -> Any:
        x.mul_(2)
        return x + y + self.bias


def test_an_argument_is_changed_and_may_not_overlap_another(tmp_path: Path) -> None:
    program = nanoloom.compile(
        Adder(), (torch.ones(4), torch.ones(4)), cache=tmp_path, threads=1
    )
    x, y = torch.full((4,), 3.0), torch.ones(4)
    assert program(x, y).tolist() == [8.0] * 4
    assert x.tolist() == [6.0] * 4
    memory = torch.ones(6)
    with pytest.raises(InputError) as refusal:
        program(memory[:4], memory[2:])
    assert str(refusal.value) == (
        "input x: shares memory with y, and is changed in place;"
        " give one of them as a clone()"
    )
    with pytest.raises(InputError, match="input x: has several elements in one place"):
        program(torch.ones(1).expand(4), y)
    with pytest.raises(InputError, match="arguments of the module: are 1 by position"):
        program(x)


def test_weights_that_change_are_seen(tmp_path: Path) -> None:
    module = Adder()
    program = nanoloom.compile(
        module, (torch.ones(4), torch.ones(4)), cache=tmp_path, threads=1
    )
    module.bias.add_(1)  # torch counts it
    assert program(torch.zeros(4), torch.zeros(4)).tolist() == [2.0] * 4
    module.bias.data.numpy()[:] = 7  # nobody does
    program.reload()
    assert program(torch.zeros(4), torch.zeros(4)).tolist() == [7.0] * 4


def test_a_module_in_training_is_refused(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).train()
    with pytest.raises(Unsupported) as refusal:
        nanoloom.compile(module, (torch.ones(1, 3),), cache=tmp_path)
    told = str(refusal.value)
    assert "dropout" in told
    assert told.endswith("drops numbers at random; call module.eval() first")


def test_a_module_needs_example_inputs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give example_inputs="):
        nanoloom.compile(models.mlp(), cache=tmp_path)


def test_the_exporter_to_onnx_is_the_second_way(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, x = models.mlp(), torch.randn(4, 5)
    ways = [
        nanoloom.compile(module, (x,), via=via, cache=tmp_path, threads=1)(x)
        for via in ("graph", "onnx")
    ]
    assert torch.allclose(*ways, rtol=0, atol=1e-6)
    with pytest.raises(Unsupported, match="changes tensors in place"):
        args = torch.randn(1, 4), torch.tensor([0])
        nanoloom.compile(models.Cache(), args, via="onnx", cache=tmp_path)


@pytest.mark.parametrize("way", ["graph", "onnx"])
def test_the_command_takes_an_archive(
    way: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    module, x = models.mlp(), torch.randn(4, 5)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(module, (x,)), path)
    np.save(tmp_path / "x.npy", x.numpy())
    (name,) = import_exported(torch.export.load(path)).inputs
    words = [
        str(path),
        "--via",
        way,
        "-i",
        f"{name}={tmp_path / 'x.npy'}",
        "--threads",
        "1",
    ]
    out = tmp_path / "y.npy"
    where = ["--cache", str(tmp_path / "cache")]
    assert main(["run", *words, "-o", str(out), *where]) == 0
    with torch.no_grad():
        wanted = module(x).numpy()
    assert np.abs(np.load(out) - wanted).max() <= 1e-6
    assert main(["check", str(path), "--via", way]) == 0
    assert "compiles" in capfd.readouterr().out
    assert main(["verify", *words, *where]) == 0
    library = str(tmp_path / "model.so")
    assert main(["compile", str(path), "--via", way, "-o", library, *where]) == 0
    assert main(["run", library, *words[3:5], "-o", str(out)]) == 0
    assert np.abs(np.load(out) - wanted).max() <= 1e-6


def test_a_way_that_a_model_does_not_have(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no archive")
    assert main(["check", str(path), "--via", "onnx"]) == 1
    assert "is for a program of PyTorch (.pt2), and this is none" in (
        capfd.readouterr().err
    )
    assert main(["check", str(path), "--via", "script"]) == 2
    assert "script is neither graph nor onnx" in capfd.readouterr().err
    args = torch.randn(1, 4), torch.tensor([0])
    torch.export.save(torch.export.export(models.Cache().eval(), args), path)
    assert main(["run", str(path), "--via", "onnx"]) == 1
    assert "changes tensors in place" in capfd.readouterr().err


class Turned(nn.Module):
    def forward(self, x: Any) -> Any:
        axes = torch.swapaxes(x, axis0=1, axis1=2)
        return x.swapaxes(0, 1), x.swapdims(-1, 0), x.transpose(0, 2), axes


class Nothing(nn.Module):
    def forward(self, x: Any) -> Any:
        return x, x


def test_axes_are_swapped_by_every_name(tmp_path: Path) -> None:
    x = torch.arange(24).reshape(2, 3, 4)
    program: Any = nanoloom.compile(Turned(), (x,), cache=tmp_path, threads=1)
    for wanted, made in zip(Turned()(x), program(x), strict=True):
        assert torch.equal(wanted, made)


def test_a_module_that_computes_nothing_is_refused() -> None:
    with pytest.raises(Unsupported, match="computes nothing"):
        nanoloom.compile(Nothing(), (torch.ones(3),))


class Filled(nn.Module):
    def forward(self, x: Any) -> Any:
        return (x + 1).mul_(2)


def test_what_torch_itself_cannot_decompose_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*given: Any) -> Any:
        raise RuntimeError("no storage\nand a long trace")

    exported = torch.export.export(Filled(), (torch.ones(3),))
    monkeypatch.setattr(type(exported), "run_decompositions", fails)
    with pytest.raises(Unsupported, match="exported: RuntimeError: no storage;"):
        nanoloom.compile(exported, via="onnx")


class Heads(nn.Module):
    def forward(self, x: Any) -> Any:
        few = x.repeat_interleave(2, 1)
        return nn.functional.scaled_dot_product_attention(
            x.repeat(1, 4, 1, 1), few, few, enable_gqa=True
        )


def test_heads_in_groups_of_an_open_number(tmp_path: Path) -> None:
    """4 n heads of queries, 2 n of keys."""
    shapes = ({1: torch.export.Dim("n")},)
    example = (torch.randn(2, 3, 5, 8),)
    program = nanoloom.compile(
        Heads().eval(), example, dynamic_shapes=shapes, cache=tmp_path, threads=1
    )
    for n in (3, 1):
        x = torch.randn(2, n, 5, 8)
        assert torch.allclose(program(x), Heads()(x), rtol=0, atol=1e-5)


class Scales(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * x.shape[0] ** -0.5, x / (x.shape[0] + 1) ** 0.5


def test_roots_of_sizes(tmp_path: Path) -> None:
    shapes = ({0: torch.export.Dim("n", min=1)},)
    example = (torch.randn(3, 2),)
    program = nanoloom.compile(
        Scales().eval(), example, dynamic_shapes=shapes, cache=tmp_path, threads=1
    )
    x = torch.randn(7, 2)
    for ours, wanted in zip(program(x), Scales()(x), strict=True):
        assert torch.allclose(ours, wanted, rtol=1e-6, atol=0)


class LyingOtherwise(nn.Module):
    """Results whose axes lie in another order than torch counts them."""

    def forward(self, image: Any, rows: Any) -> Any:
        made = rows * 2
        last = image.permute(0, 2, 3, 1)
        return made.mT, made, image + 1, last, image[0].permute(2, 1, 0) + 1


def test_a_file_has_axes_as_torch_counts_them(tmp_path: Path) -> None:
    image = torch.arange(120.0).reshape(2, 3, 4, 5)
    image = image.to(memory_format=torch.channels_last)
    args = image, torch.arange(6.0).reshape(3, 2).T
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(LyingOtherwise(), args), path)
    program = nanoloom.compile(path, cache=tmp_path)
    assert [x.shape for x in program.inputs] == [(2, 3, 4, 5), (2, 3)]
    made = program(*(x.numpy() for x in args))
    for got, wanted in zip(made.values(), LyingOtherwise()(*args), strict=True):
        np.testing.assert_array_equal(got, wanted)
