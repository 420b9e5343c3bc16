"""Sizes that are divided: what they are for any number, and which samples tell them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from nanoloom.dynamic.dynamic_refusal import NotDynamic
from nanoloom.dynamic.fit_floors import distinguished, divided, is_ambiguous
from nanoloom.dynamic.floor_division import Floor, dim_of, floors_of, plain
from nanoloom.dynamic.graph import limits_of_parts
from nanoloom.dynamic.polynomial import Size, found
from nanoloom.dynamic.samples import image_samples, tried_samples

IMAGE = [("batch", 3, "h", "w")]
NAMES = ("h", "w")


TEXTS = (
    "64 * h2 * w2", "h2 + 2", "2 * h2 + 1", "4 * t + 2", "h2 * w2 + 2 * h2",
    "9 * h2 * w", "4 * h * w", "12 * (h2 * w2) ** 2", "(t * w2 + 1) ** 2 * 8",
)  # fmt: skip


def samples(index: int = -2) -> list[dict[str, int]]:
    """Those of images of any size, or (-1) of multiples."""
    return [dict(s) for s in tried_samples([(1, 3, "h", "w")], NAMES)[index]]


def whole(dims: dict[str, int], names: Iterable[str]) -> dict[str, int]:
    """Dimensions and their floors."""
    floors = [floor for floor in floors_of(names) if floor.dim in dims]
    return dims | {floor.name: floor.of(dims) for floor in floors}


def test_names() -> None:
    floor = Floor("height of x", 3, 4)
    assert Floor.named(floor.name) == floor and Floor.named("height of x") is None
    assert dim_of(floor.name) == dim_of("height of x") == "height of x"
    assert plain(("h", floor.name)) == ("h",)
    assert floors_of(("h", floor.name)) == (floor,)
    many = Floor("height of x", 1, 4, 3)
    assert Floor.named(many.name) == many and dim_of(many.name) == "height of x"
    assert many.of({"height of x": 5}) == 4 == (3 * 5 + 1) // 4


@pytest.mark.parametrize("index", [-2, -1])
@pytest.mark.parametrize(
    "steps",
    [((0, 2),), ((1, 2), (1, 2), (0, 2)), ((3, 4), (-1, 2), (3, 4)), ((-3, 2), (-3, 2)),
     ((1, 1), (4, 8))],
)  # fmt: skip
def test_division_after_division(
    steps: tuple[tuple[int, int], ...], index: int
) -> None:
    """floor((x + a) / n) again and again is a floor of the first, and a number."""
    known, sizes = samples(index), list[Size]()
    numbers = [s["h"] for s in known]
    for add, over in steps:
        sizes.append(divided([n + add for n in numbers], over, known))
        numbers = [(n + add) // over for n in numbers]
        assert [sizes[-1].of(s) for s in known] == numbers
    for h in range(64, 2000, 32 if index == -1 else 1):
        wanted = h
        for (add, over), size in zip(steps, sizes, strict=True):
            wanted = (wanted + add) // over
            assert size.of(whole({"h": h}, known[0])) == wanted, h


def test_what_is_not_divided() -> None:
    known = samples()
    with pytest.raises(NotDynamic, match="a sum of sizes is divided"):
        divided([s["h"] * s["w"] for s in known], 2, known)
    with pytest.raises(NotDynamic, match="is divided"):
        divided([s["h"] ** 4 + s["w"] for s in known], 2, known)
    assert list(known[0]) == ["h", "w"]


def test_polynomials_of_floors() -> None:
    """What stages ask for: pixels, borders, what windows reach, tiles."""
    known = samples()
    for dim in NAMES:
        half = divided([s[dim] + 1 for s in known], 2, known)
        divided([half.of(s) + 3 for s in known], 4, known)
    h2, w2, t = "(h + 1) // 2", "(w + 1) // 2", "(h + 7) // 8"
    assert not is_ambiguous(known)
    for text in TEXTS:

        def of(h: int, w: int, text: str = text) -> int:
            given = {"h": h, "w": w, "h2": (h + 1) // 2, "w2": (w + 1) // 2}
            return int(eval(text, {**given, "t": (h + 7) // 8}))

        size = found([of(s["h"], s["w"]) for s in known], known)
        assert size is not None, text
        for h, w in ((1, 1), (7, 8), (33, 47), (224, 224), (501, 640)):
            dims = {"h": h, "w": w, h2: (h + 1) // 2, w2: (w + 1) // 2, t: (h + 7) // 8}
            assert size.of(dims) == of(h, w), (text, str(size))


def test_samples_that_confuse() -> None:
    """Odd numbers: half of them rounded up is no size of its own."""
    known = [{"h": n} for n in (131, 137, 139, 149)]
    divided([s["h"] + 1 for s in known], 2, known)
    assert is_ambiguous(known) == [("h", "(h + 1) // 2")]
    others = distinguished(known)
    assert not is_ambiguous(others) and others[0] == known[0]
    assert all(s["(h + 1) // 2"] == (s["h"] + 1) // 2 for s in others)


def test_multiples() -> None:
    """Nothing is left over, which is a limit."""
    known = samples(-1)
    assert str(divided([s["h"] for s in known], 16, known)) == "2 * (h + 0) // 32"
    limit = limits_of_parts(known)[0]
    assert limit.of({"h": 64, "(h + 0) // 32": 2}) == 0
    assert limit.of({"h": 65, "(h + 0) // 32": 2}) == -1


def test_what_has_no_images() -> None:
    assert not image_samples([("a", 64), ("b", 64)], ("a", "b"), ((9,) * 4,), 1)
    text = image_samples([("batch", "length", 64)], ("batch", "length"), ((9,) * 4,), 1)
    assert text[0] == {"batch": 3, "length": 9}
    signal = image_samples([("length",)], ("length",), ((9,) * 4,), 1)
    assert signal[0] == {"length": 9}
    made = image_samples(IMAGE, ("batch", *NAMES), ((9,) * 4, (8,) * 4), 1)
    assert made[0] == {"batch": 3, "h": 9, "w": 8}


def test_no_multiple_of_a_floor_that_is_nothing() -> None:
    """A sample that many strides leave nothing of."""
    floor = Floor("n", 0, 320).name
    known = [{"n": n, floor: n // 320} for n in (203, 640, 1280, 960)]
    assert found([1, 2, 4, 3], known) is None
