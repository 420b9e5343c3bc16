"""The sentences that the demo compares, and their tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

# Two that say nearly the same stand one after the other; the pairs are unrelated.
SENTENCES = (
    "A man is playing a guitar on the stage.",
    "Someone performs music on a stringed instrument.",
    "The cat sleeps on the warm windowsill.",
    "A kitten is napping in the sun by the window.",
    "How do I reset my password?",
    "I forgot my login credentials and cannot sign in.",
    "The stock market fell sharply after the interest rate decision.",
    "Shares dropped when the central bank raised rates.",
    "Bake the bread for forty minutes at 220 degrees until the crust is golden brown.",
    "Leave the loaf in a hot oven until it has browned.",
    "The telescope photographed a galaxy billions of light years away.",
    "Astronomers observed a very distant cluster of stars.",
)


def tokenize(files: Path, sentences: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """The model's three inputs, int64 [sentences, longest], padded with zeros.

    `files` holds tokenizer.json and sentence_bert_config.json (the longest input).
    """
    tokenizer = Tokenizer.from_file(str(files / "tokenizer.json"))
    limits = json.loads((files / "sentence_bert_config.json").read_text())
    tokenizer.enable_truncation(max_length=limits["max_seq_length"])
    tokenizer.enable_padding()  # to the longest; the file itself says "always 128"
    encodings = tokenizer.encode_batch(list(sentences))
    return {
        "input_ids": np.array([e.ids for e in encodings], np.int64),
        "attention_mask": np.array([e.attention_mask for e in encodings], np.int64),
        "token_type_ids": np.array([e.type_ids for e in encodings], np.int64),
    }
