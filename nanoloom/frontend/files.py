"""Files opened for a model: the model's own and those its weights stand in."""

from __future__ import annotations

import difflib
import mmap
import os
import stat
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

from nanoloom.errors import Error, ModelError
from nanoloom.frontend.wire import Buffer

if TYPE_CHECKING:  # .npy files are mapped without it
    from nanoloom.frontend.mapped_tensors import Region


def map_file(
    path: Path,
    where: str,
    what: str = "file",
    hint: str = "",
    refusal: type[Error] = ModelError,
) -> Buffer:
    """A regular file's content, mapped read-only; b"" for an empty one.

    Raises `refusal` if it cannot be opened, is a directory, a pipe or a device.
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if path.is_symlink():
            reason = f"is a link to {os.readlink(path)}, and nothing is there"
            hint = hint or "fetch it again, or mend the link"
            raise refusal(reason, where=where, hint=hint) from None
        hint = hint or likely(path)
        raise refusal(f"no such {what}", where=where, hint=hint) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise refusal(f"cannot open the {what}: {reason}", where=where) from None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise refusal(
                f"is a directory, no {what}", where=where, hint=hint or inside(path)
            )
        if not stat.S_ISREG(status.st_mode):
            raise refusal(
                "is a pipe or a device", where=where, hint="copy it to a file first"
            )
        if status.st_size == 0:
            return b""
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise refusal(f"cannot map the {what}: {error.strerror}", where=where) from None
    finally:
        os.close(descriptor)


def likely(path: Path) -> str:
    """A hint for a mistyped name: the closest one in the same folder."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        return f"there is no folder {path.parent}"
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean {path.with_name(close[0])}?" if close else "check the path"


def inside(folder: Path) -> str:
    """A hint for a folder in place of a file: the models inside, if it has any."""
    try:
        names = sorted(n for n in os.listdir(folder) if n.endswith(".onnx"))
    except OSError:
        names = []
    if not names:
        return "give a file"
    return "give one of its models: " + ", ".join(names[:3])


@dataclass
class WeightFiles:
    """The files a model may take weights from.

    folder: the model's folder; None for a model in memory, which has none.
    home: where the model file really is, should the path lead through a symbolic
    link (download caches link a whole snapshot into one folder of blobs).
    opened: buffers by location, shared by all tensors of a file.
    """

    folder: Path | None
    home: Path | None = None
    opened: dict[str, Buffer] = field(default_factory=dict[str, Buffer])

    def region(self, location: str, offset: int, length: int, where: str) -> Region:
        """The span of a file that holds a tensor's data.  where: names the tensor.

        Raises ModelError if the location leaves the folder or the file is too short.
        """
        from nanoloom.frontend.mapped_tensors import Region

        buffer = self.opened.get(location)
        if buffer is None:
            buffer = map_file(
                self.resolve(location, where),
                where,
                f"weight file {location!r}",
                "put it beside the model, under the name it was exported with",
            )
            self.opened[location] = buffer
        if offset + length > len(buffer):
            raise ModelError(
                f"needs bytes {offset} to {offset + length} of"
                f" {location!r}, which has {len(buffer)}",
                where=where,
                hint="fetch or export the model again",
            )
        return Region(buffer, offset, length)

    def resolve(self, location: str, where: str) -> Path:
        """The path of a weight file, which must not leave the model's folder."""
        if self.folder is None:
            raise ModelError(
                f"its data is in another file ({location!r}) and a model in memory"
                " has no folder",
                where=where,
                hint="give the path of the .onnx file instead",
            )
        if not location or "\0" in location:
            raise ModelError("does not name its weight file", where=where)
        parts = Path(normpath(location)).parts  # of weights/../weights/w.bin: two
        path = self.folder.joinpath(*parts)
        roots = [self.folder.resolve(), *([self.home] if self.home else [])]
        if Path(location).is_absolute() or ".." in parts or not is_within(path, roots):
            raise ModelError(
                f"its weight file {location!r} is outside of the model's folder",
                where=where,
                hint="move the weights beside the model and save it with a relative"
                " location",
            )
        return path


def is_within(path: Path, roots: list[Path]) -> bool:
    """Whether a path, symbolic links followed, stays inside one of some folders."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # a circle of links
        return False
    return any(real.is_relative_to(root) for root in roots)
