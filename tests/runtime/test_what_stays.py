"""Programs that are gone leave nothing behind, and those that are there take little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nanoloom.cache import Cache
from tests.c_libraries import lend_runtime

BEGIN = """
import gc, os, resource, sys, threading, time
from pathlib import Path
import numpy as np
from onnx import parser
import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.workers import pool

pool.IDLE_SECONDS = 0.1  # workers are none of the program's, and end when they want
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
MODEL = parser.parse_model('''
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 7] x) => (float[n, 5] y)
    <float[7, 5] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,
    25,26,27,28,29,30,31,32,33,34,35}>
    {
      m = MatMul(x, w)
      y = Relu(m)
    }
''').SerializeToString()
W = np.arange(1, 36, dtype=np.float32).reshape(7, 5)
STORE = Cache(Path(sys.argv[1]))

def made(n):
    program = nanoloom.compile(MODEL, threads=2, cache=STORE)
    check(program, n)
    return program

def check(program, n):
    x = np.ones((n, 7), np.float32)
    assert (program({"x": x})["y"] == x @ W).all()

def now():
    gc.collect()
    while any(x.name == "nanoloom worker" for x in threading.enumerate()):
        time.sleep(0.02)
    lines = Path("/proc/self/maps").read_text().splitlines()
    loaded = sum("program.so" in line for line in lines)
    counts = [len(os.listdir(f"/proc/self/{what}")) for what in ("fd", "task")]
    return (*counts, loaded), len(lines)

for n in range(1, 9):  # the first ones are compiled here, the others read
    made(n)
start, mappings = now()
assert start[2] == 0
"""

MADE_AND_DROPPED = """
for turn in range(200):
    made(turn % 4 + 1)
after, later = now()
assert after == start and later <= mappings + 8, (start, after, mappings, later)
program = nanoloom.compile(MODEL, threads=2, cache=STORE)
program.others = [program]  # as part of a cycle
for n in range(1, 5):
    check(program, n)
del program
assert now()[0] == start
"""

MANY_AT_ONCE = """
programs = [made(turn % 4 + 1) for turn in range(100)]
assert now()[0][0] == start[0]
for turn, program in enumerate(programs):
    check(program, turn % 4 + 1)
del programs, program
assert now()[0] == start
"""

NONE_IS_LEFT = """
program = made(1)
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
for free in (0, 1, 2, 3, 5):
    for descriptor in taken[len(taken) - free:]:
        os.close(descriptor)
    taken = taken[:len(taken) - free]
    for n in (2, 9 + free):  # kept, new
        try:
            check(program, n)
        except Error as error:
            told = str(error)
            assert "no file descriptor is left; close files, or raise" in told, told
            assert "pip install" not in told
    check(program, 1)
for descriptor in taken:
    os.close(descriptor)
for n in (2, 20, 21):
    check(program, n)
assert STORE._spare is None
"""


def test_descriptors_threads_and_mappings(tmp_path: Path) -> None:
    lend_runtime(Cache(tmp_path / "cache"))
    script = BEGIN + MADE_AND_DROPPED + MANY_AT_ONCE + NONE_IS_LEFT
    words = [sys.executable, "-c", script, str(tmp_path / "cache")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
