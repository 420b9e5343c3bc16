"""Names of what a program has more of where sizes have no bound.

Such a size is the extent of one more input, which it does not read; what it found is
one more output.  A room is named as the node that decides, with EXACT in front of it
where just so many elements are wanted, and not at least so many, and with BY_SIZES
where nothing but sizes of the inputs decides: a program for these needs no such room.
"""

from __future__ import annotations

from collections.abc import Sequence

INPUT, OUTPUT = "nanoloom.room", "nanoloom.needed"  # in front of the room
EXACT, BY_SIZES = "=", "=="
DIMENSION = "nanoloom_room_"  # in front of a room's number: its extent, by name


def room_inputs(rooms: Sequence[str]) -> list[str]:
    return [f"{INPUT} {room}" for room in rooms]


def needed_outputs(rooms: Sequence[str]) -> list[str]:
    return [f"{OUTPUT} {room}" for room in rooms]


def rooms_among(inputs: Sequence[str]) -> list[str]:
    """The rooms of a program with these inputs."""
    return [x.removeprefix(f"{INPUT} ") for x in inputs if x.startswith(f"{INPUT} ")]


def node_of(room: str) -> str:
    """The node that decides, as messages name it."""
    return room.removeprefix(BY_SIZES).removeprefix(EXACT)


def are_by_sizes(rooms: Sequence[str]) -> bool:
    """Whether sizes of the inputs decide about all of them."""
    return all(room.startswith(BY_SIZES) for room in rooms)
