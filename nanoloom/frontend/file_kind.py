"""What a file is that should have been an ONNX model, told from its first bytes."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A file format: where its mark stands, what to call it and what to do instead."""

    offset: int
    mark: bytes
    name: str
    hint: str


EXPORT = (
    "export the model with torch.onnx.export(..., dynamo=True), or to a .pt2 file"
    " with torch.export.save"
)
KINDS = (
    Kind(0, b"version https://git-lfs", "a Git LFS pointer", "fetch it: git lfs pull"),
    Kind(0, b"PK\x03\x04", "a zip archive (PyTorch saves .pt files so)", EXPORT),
    Kind(0, b"\x80\x02", "a Python pickle", EXPORT),
    Kind(0, b"\x80\x03", "a Python pickle", EXPORT),
    Kind(0, b"\x80\x04", "a Python pickle", EXPORT),
    Kind(0, b"\x1f\x8b", "gzip-compressed", "unpack it first: gunzip"),
    Kind(0, b"\x28\xb5\x2f\xfd", "zstd-compressed", "unpack it first: unzstd"),
    Kind(0, b"\xfd7zXZ", "xz-compressed", "unpack it first: unxz"),
    Kind(0, b"\x89HDF", "an HDF5 file (Keras)", "convert it with tf2onnx"),
    Kind(4, b"TFL3", "a TensorFlow Lite model", "convert it with tf2onnx"),
    Kind(4, b"ORTM", "an ORT-format model", "use the .onnx file it was made from"),
    Kind(0, b"GGUF", "a GGUF file", "export the original model to ONNX"),
    Kind(0, b"\x93NUMPY", "a numpy array", "give it with --input NAME=FILE.npy"),
    Kind(0, b"\x7fELF", "a program or library", "give the .onnx file"),
    Kind(0, b"ML\xefR", "MLIR bytecode", "give MLIR as text (.mlir)"),
    Kind(8, b'{"', "a safetensors file", EXPORT),
)

# Field number -> wire type of ModelProto; every ONNX file starts with one of them.
MODEL_FIELDS = {
    1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2
}  # fmt: skip


def foreign_kind(head: bytes) -> Kind | None:
    """The format of a file that is certainly not ONNX; None if it may be.

    head: the first bytes of the file, 64 or more where it has them.
    """
    for kind in KINDS:
        if head[kind.offset :].startswith(kind.mark):
            return kind
    if starts_like_a_model(head):
        return None
    return text_kind(head) or Kind(
        0, b"", "of an unknown format", "give the .onnx file"
    )


def text_kind(head: bytes) -> Kind | None:
    """The format of a text; None for other bytes."""
    if not is_text(head):
        return None
    return Kind(0, b"", f"text ({first_words(head)})", "give the .onnx file")


def starts_like_a_model(head: bytes) -> bool:
    """Whether the first tag is a field of ModelProto.

    Tags of field 16 and above take a second byte of the base-128 number.
    """
    tag = head[0]
    if tag >= 0x80 and len(head) > 1:
        tag = tag & 0x7F | head[1] << 7
    return MODEL_FIELDS.get(tag >> 3) == tag & 7


def is_text(head: bytes) -> bool:
    return all(byte >= 32 or byte in b"\t\n\r" for byte in head)


def first_words(head: bytes) -> str:
    """The first characters of a text, fit for a one-line message."""
    text = head.decode("utf-8", errors="replace").split()
    words = " ".join(text)[:24]
    return f"it begins with {words!r}" if words else "blank"
