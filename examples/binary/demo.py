"""Train a small binary network, compile it, and compare what both see.

python -m examples.binary.demo        needs PyTorch; seconds on a CPU
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import nanoloom
from examples.binary.shapes import Kinds, draw

TRAINED, TESTED = 4000, 1000


def accuracy(scores: NDArray[np.float32], kinds: Kinds) -> float:
    """The part of the pictures whose kind has the highest score."""
    return float((scores.argmax(axis=1) == kinds).mean())


def main() -> int:
    """Print both accuracies; 1 if the compiled network's is another."""
    import torch

    from examples.binary.network import export, for_inference, network, train

    torch.manual_seed(0)
    model, began = network(), time.perf_counter()
    train(model, *draw(TRAINED, seed=1))
    print(f"trained in {time.perf_counter() - began:.0f} s")
    pictures, kinds = draw(TESTED, seed=2)
    fixed = for_inference(model)
    with torch.no_grad():
        expected = fixed(torch.from_numpy(pictures)).numpy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "binary.onnx"
        export(fixed, path, TESTED)
        scores = nanoloom.compile(path)({"pictures": pictures})["scores"]
    before, after = accuracy(expected, kinds), accuracy(scores, kinds)
    print(f"accuracy in PyTorch {before:.1%}, compiled {after:.1%}")
    alike = float((scores.argmax(axis=1) == expected.argmax(axis=1)).mean())
    print(f"the same answer for {alike:.1%} of the pictures")
    return 0 if abs(before - after) <= 0.002 else 1


if __name__ == "__main__":
    sys.exit(main())
