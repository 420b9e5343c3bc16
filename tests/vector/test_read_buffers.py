"""Bufferization looks at two reads of a tensor in a block, and decides as of all."""

from __future__ import annotations

import random

import pytest

from nanoloom.ir import mlir
from nanoloom.target.host import host
from nanoloom.vector import passes
from nanoloom.vector.directives import Directives
from nanoloom.vector.passes import Work, to_buffers
from nanoloom.vector.read_buffers import read_buffers

READS = ("tensor.extract", "bufferization.to_buffer")


def kernel(seed: int) -> str:
    """Reads and writes of tensors in any order, also of what was written already."""
    drawn = random.Random(seed)
    tensors, sums, lines = ["%x", "%y"], ["%v"], list[str]()
    for i in range(drawn.randint(12, 40)):
        tensor, index = drawn.choice(tensors), f"%c{drawn.randrange(4)}"
        if drawn.random() < 0.2:
            lines.append(f"%t{i} = tensor.insert {sums[-1]} into {tensor}[{index}]")
            lines[-1] += " : tensor<4xf32>"
            tensors.append(f"%t{i}")
            continue
        read = f"tensor.extract {tensor}[{index}] : tensor<4xf32>"
        if drawn.random() < 0.2:  # in a block of its own
            more = [f"%r{i}_{k} = {read}" for k in range(drawn.randint(1, 4))]
            read = f"scf.if %b -> f32 {{ {' '.join(more)} scf.yield %r{i}_0 : f32 }}"
            read += f" else {{ scf.yield {sums[-1]} : f32 }}"
        lines += [f"%r{i} = {read}", f"%s{i} = arith.addf {sums[-1]}, %r{i} : f32"]
        sums.append(f"%s{i}")
    numbers = " ".join(f"%c{k} = arith.constant {k} : index" for k in range(4))
    return f"""func.func @kernel(%x: tensor<4xf32> {{bufferization.writable = false}},
        %v: f32, %b: i1, %y: tensor<4xf32> {{bufferization.writable = true}})
        -> tensor<4xf32> {{ {numbers} {" ".join(lines)}
        %end = tensor.insert {sums[-1]} into {drawn.choice(tensors)}[%c0]
        : tensor<4xf32> return %end : tensor<4xf32> }}"""


def bufferized(text: str) -> str:
    with mlir.context():
        module = mlir.ir.Module.parse(text)
        to_buffers(Work(module, host(), Directives(host())))
        module.operation.verify()
        return str(module)


def test_nothing_else_comes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes are in place, or beside, as if every read had been looked at."""
    texts = [kernel(seed) for seed in range(60)]
    made = [bufferized(text) for text in texts]
    monkeypatch.setattr(passes, "read_buffers", lambda module: None)
    assert made == [bufferized(text) for text in texts]
    assert any("memref.copy" in text for text in made)


def test_two_reads_of_a_tensor_in_a_block() -> None:
    """However many there are."""
    reads = " ".join(
        f"%r{i} = tensor.extract %x[%c] : tensor<?xf32> "
        f"%s{i + 1} = arith.addf %s{i}, %r{i} : f32"
        for i in range(300)
    )
    with mlir.context():
        module = mlir.ir.Module.parse(f"""
        func.func @kernel(%x: tensor<?xf32>, %s0: f32, %c: index) -> f32 {{
        {reads} return %s300 : f32 }}""")
        read_buffers(module)
        module.operation.verify()
        assert len(mlir.named(module, *READS)) == 2
        assert len(mlir.named(module, "memref.load")) == 300
