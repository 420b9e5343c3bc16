"""States of loops that are written into while their old numbers are still wanted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom.cache import Cache
from tests.linalg.control.test_bodies import check, parse

OVERWRITTEN = {
    "a part of it": "n = ScatterElements(u, two, part)  o = Sub(n, u)",
    "a part of it, by places": """place = Constant<value = int64[1,1] {2}>()
        n = ScatterND(u, place, part)  o = Add(n, u)""",
    "a loop, and read behind it": """n = Loop (three, go, u) <
        body = inner (int64 i, bool k, int64[4] v) => (k2, w) {
          k2 = Identity(k)  m = Mul(v, e)  w = Sub(m, part) }>  o = Sub(n, u)""",
    "a loop, and read in it": """n = Loop (three, go, u) <
        body = inner (int64 i, bool k, int64[4] v) => (k2, w) {
          k2 = Identity(k)  m = Mul(v, e)  w = Sub(m, u) }>  o = Neg(n)""",
    "a loop that carries it twice": """n, o = Loop (three, go, u, u) <
        body = inner (int64 i, bool k, int64[4] v, int64[4] r) => (k2, v2, r2) {
          k2 = Identity(k)  v2 = Sub(v, r)  r2 = Add(r, e) }>""",
    "a loop that ends early": """n = Loop (, go, u) <
        body = inner (int64 i, bool k, int64[4] v) => (k2, w) {
          k2 = Less(i, three)  m = Mul(v, e)  w = Sub(m, u) }>  o = Sub(n, u)""",
}


@pytest.mark.parametrize("written", OVERWRITTEN)
def test_a_state_that_is_written_into_and_read(written: str) -> None:
    """Its old numbers are wanted where the new ones already are."""
    text = f"""agraph (int64[4] s, int64[3,4] x) => (int64[4] t, int64[3,4] y) {{
      two = Constant<value = int64[1] {{2}}>()
      three = Constant<value = int64 {{3}}>()
      go = Constant<value = bool {{1}}>()
      t, y = Scan (s, x) <num_scan_inputs = 1,
        body = row (int64[4] u, int64[4] e) => (n, o) {{
          part = Gather(e, two)
          {OVERWRITTEN[written]}
        }}
      >
    }}"""
    x = np.array([[1, 2, -3, 4], [2, -1, 5, 3], [-2, 3, 1, 2]])
    check(text, s=np.array([1, 3, -2, 5]), x=x)


def test_a_loop_in_a_loop_of_one_kernel(tmp_path: Path) -> None:
    """Trips that only the data say leave both in a kernel; the copy stays in it."""
    text = """agraph (int64[4] s, int64 n) => (int64[4] t) {
      three = Constant<value = int64 {3}>()
      go = Constant<value = bool {1}>()
      t = Loop (n, go, s) <
        body = outer (int64 i, bool k, int64[4] u) => (k2, v) {
          k2 = Identity(k)
          v = Loop (three, go, u) <
            body = inner (int64 j, bool l, int64[4] w) => (l2, x) {
              l2 = Identity(l)  m = Mul(w, u)  x = Sub(m, j) }> }>
    }"""
    program = nanoloom.compile(parse(text), threads=1, cache=Cache(tmp_path))
    start = np.array([1, 3, -2, 5])
    for trips in range(3):
        wanted = start
        for _ in range(trips):
            begun = wanted
            for j in range(3):
                wanted = wanted * begun - j
        made = program({"s": start, "n": np.array(trips)})["t"]
        assert made.tolist() == wanted.tolist()
