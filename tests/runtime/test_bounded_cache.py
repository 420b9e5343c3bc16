"""What was used last stays, within its bounds."""

from __future__ import annotations

import gc
import threading
import weakref

from nanoloom.runtime.bounded_cache import BoundedCache


class Thing:
    pass


def sized(most: int, most_bytes: int) -> BoundedCache[str, int]:
    return BoundedCache(most, most_bytes, lambda _, value: value)


def there(kept: BoundedCache[str, int], names: str) -> str:
    return "".join(name for name in names if name in kept)


def test_the_ones_used_longest_ago_go() -> None:
    kept = sized(3, 1000)
    for name in "abc":
        kept.put(name, 1)
    assert kept.get("a") == 1 and kept.get("x") is None
    kept.put("d", 1)
    assert there(kept, "abcd") == "acd" and len(kept) == 3
    kept.put("c", 2)
    assert kept.get("c") == 2 and there(kept, "abcd") == "acd"


def test_bytes_are_bounded_but_the_last_one_stays() -> None:
    kept = sized(10, 100)
    for name in "abcd":
        kept.put(name, 30)
    assert there(kept, "abcd") == "bcd"
    kept.put("e", 500)
    assert there(kept, "abcde") == "e"
    kept.put("f", 100)
    assert there(kept, "abcdef") == "f"


def test_who_has_one_keeps_it() -> None:
    kept: BoundedCache[int, Thing] = BoundedCache(1, 0, lambda *_: 0)
    thing = Thing()
    gone = weakref.ref(thing)
    kept.put(0, thing)
    kept.put(1, Thing())
    assert kept.get(0) is None and gone() is thing
    del thing
    gc.collect()
    assert gone() is None


def test_many_threads() -> None:
    kept = sized(5, 1000)

    def work(first: int) -> None:
        for number in range(first, first + 500):
            kept.put(str(number % 20), 1)
            kept.get(str(number % 7))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(kept) == 5
