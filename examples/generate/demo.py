"""Generate text with a model of Llama's shape, whose cache grows in place.

    python -m examples.generate.demo [--layers 4] [--width 256] [--tokens 60]
        [--threads 1]        needs PyTorch, which writes the model

The weights are random, so what is said means nothing; that nanoloom and ONNX Runtime
say the same is what is checked, and how many tokens a second each of them says.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

import nanoloom
from examples.generate.loop import (
    Generated,
    Ids,
    Next,
    generate,
    greedy,
    kept_by_hand,
    sampled,
)
from nanoloom.api.sessions.session import Session
from nanoloom.errors import Error

PROMPT = 12  # tokens


def told(name: str, made: Generated) -> str:
    shown = " ".join(map(str, made.ids[:12]))
    return f"{name:13} {made.rate:8.1f} tokens/s   {shown} ..."


def following(session: Session) -> Next:
    """A session from the beginning."""
    session.reset()
    return lambda ids: session({"input_ids": ids})["logits"]


def demo(path: Path, prompt: Ids, tokens: int, threads: int) -> int:
    """Generate by both, greedily and drawn; 1 if they differ."""
    session = nanoloom.compile(path, threads=threads).session(
        capacity=prompt.shape[1] + tokens
    )
    other = kept_by_hand(path, threads)
    generate(following(session), prompt, 2, greedy)  # compiles
    if session.reason:
        print(f"keys and values are copied: {session.reason}")
    same = True
    for way, seed in (("greedy", None), ("sampled", 7)):
        pick = [greedy if seed is None else sampled(seed) for _ in range(2)]
        ours = generate(following(session), prompt, tokens, pick[0])
        theirs = generate(other(), prompt, tokens, pick[1])
        print(f"{way}, {tokens} tokens behind {prompt.shape[1]}, threads: {threads}")
        print(told("nanoloom", ours))
        print(told("ONNX Runtime", theirs))
        same = same and ours.ids == theirs.ids
    print("the same tokens" if same else "other tokens")
    return 0 if same else 1


def main(arguments: list[str] | None = None) -> int:
    """The command: 0 done, 1 the tokens differ or nothing compiles."""
    parser = argparse.ArgumentParser(prog="python -m examples.generate.demo")
    for name, number in (("layers", 4), ("width", 256), ("tokens", 60), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=number, metavar="N")
    given = parser.parse_args(arguments)

    from examples.generate.llama import Shape, export

    shape = Shape(layers=given.layers, width=given.width, inner=given.width * 8 // 3)
    prompt = np.random.default_rng(3).integers(0, shape.words, (1, PROMPT))
    with tempfile.TemporaryDirectory() as folder:
        path = export(shape, Path(folder) / "llama.onnx")
        try:
            return demo(path, prompt, given.tokens, given.threads)
        except Error as error:
            print(error, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
