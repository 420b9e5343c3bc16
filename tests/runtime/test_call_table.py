"""Of a table only the rows that are looked up come into memory."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.cache import Cache

ROWS, COLUMNS = 80_000, 64  # 20 MB
TOKENS = 16
GIVEN = np.arange(TOKENS) * 4999 % ROWS


def model(*nodes: str) -> onnx.ModelProto:
    made = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20]>
        g (int64[{TOKENS}] ids) => (float[{TOKENS}, n] y) {{ {" ".join(nodes)} }}
    """)
    table = np.random.default_rng(0).integers(-8, 8, (ROWS, COLUMNS))
    initializer = onnx.numpy_helper.from_array(table.astype(np.float32), "table")
    made.graph.initializer.append(initializer)
    return made


def resident(folder: Path) -> int:
    """Bytes of this process's memory that are pages of files in a folder."""
    text = Path("/proc/self/smaps").read_text()
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.MULTILINE)
    found = [part for part in parts if str(folder) in part.partition("\n")[0]]
    sizes = [re.search(r"^Rss: +([0-9]+) kB$", part, re.MULTILINE) for part in found]
    assert sizes
    return sum(1024 * int(size[1]) for size in sizes if size)


@pytest.mark.parametrize("tied", [False, True])
def test_rows_that_are_looked_up(tmp_path: Path, tied: bool) -> None:
    """tied: a product has the table as its weight, too, which takes all of it."""
    nodes = ["y = Gather(table, ids)"]
    if tied:
        nodes = ["x = Gather(table, ids)", "t = Transpose(table)", "y = MatMul(x, t)"]
    made = model(*nodes)
    table = onnx.numpy_helper.to_array(made.graph.initializer[0])
    program = nanoloom.compile(made, threads=1, cache=Cache(tmp_path))
    exact = table[GIVEN] @ table.T if tied else table[GIVEN]
    assert (program({"ids": GIVEN})["y"] == exact).all()
    whole, taken = table.nbytes, resident(tmp_path / "weights")
    # A page that is read may bring 64 KiB beside it.
    assert taken >= whole if tied else taken <= TOKENS * 128 << 10
