"""DFT, STFT, windows, mel weights and determinants against numpy on float64."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.errors import ModelError
from tests.drawn_cases import few_examples
from tests.linalg.single import model_of, run_node

EPS = float(np.finfo(np.float32).eps)


def check(got: np.ndarray, right: np.ndarray, terms: int, size: float) -> None:
    """got [..., 2] or [..., 1] against complex or real numbers.

    A direct sum has error (terms + 3) eps * sum |x|, a factored one less.
    """
    parts = [right.real, right.imag] if got.shape[-1] == 2 else [right.real]
    wanted = np.stack(parts, -1)
    bound = (terms + 3) * EPS * size
    assert got.shape == wanted.shape
    assert (abs(got - wanted) <= bound).all()
    assert not (abs(0 * got - wanted) <= bound).all()


LENGTHS = st.sampled_from([1, 2, 7, 64, 67, 96, 121, 130])


@given(
    LENGTHS,
    st.sampled_from([1, 2]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 5, 90]),
    st.sampled_from([(0, 2), (1, 3), (-2, 2)]),
)
@few_examples(15)
def test_dft(
    length: int,
    parts: int,
    inverse: bool,
    onesided: bool,
    wanted: int | None,
    place: tuple[int, int],
) -> None:
    axis, rank = place
    r = np.random.default_rng(length)
    shape = [3, 2, 2][: rank - 1] if rank > 2 else [3]
    shape[axis if axis >= 0 else axis + 1] = length
    parts = 2 if inverse and onesided else 1 if onesided else parts
    x = r.standard_normal((*shape, parts)).astype(np.float32)
    size = wanted or (2 * (length - 1) if inverse and onesided else length)
    if size == 0:
        return
    given_length = None if wanted is None else np.array(wanted)
    got = run_node(
        "DFT",
        [x, given_length, np.array(axis)],
        constants=[2] + [1] * bool(wanted),
        inverse=int(inverse),
        onesided=int(onesided),
        version=20,
    )[0]
    wide = x.astype(np.float64)
    signal = wide[..., 0] + (1j * wide[..., 1] if parts == 2 else 0)
    place_of = axis if axis >= 0 else axis + 1
    if inverse and onesided:
        right = np.fft.irfft(signal, size, place_of)
    elif onesided:
        right = np.fft.rfft(signal.real, size, place_of)
    else:
        right = (np.fft.ifft if inverse else np.fft.fft)(signal, size, place_of)
    total = float(abs(signal).sum(place_of).max()) * 3 / (size if inverse else 1)
    check(got, right, size, total)


def test_dft_with_an_attribute_for_its_axis() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 1)).astype(np.float32)
    got = run_node("DFT", [x], axis=2, version=17)[0]
    check(got, np.fft.fft(x[..., 0].astype(np.float64), axis=2), 5, 15.0)


@given(
    st.sampled_from([(40, 16, 5), (33, 33, 3), (70, 65, 1)]),
    st.sampled_from([1, 2]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
@few_examples(8)
def test_stft(
    sizes: tuple[int, int, int],
    parts: int,
    onesided: bool,
    window: bool,
    constant: bool,
) -> None:
    length, frame, step = sizes
    parts = 1 if onesided else parts
    r = np.random.default_rng(length)
    x = r.standard_normal((2, length, parts)).astype(np.float32)
    weights = r.random(frame).astype(np.float32) if window else None
    got = run_node(
        "STFT",
        [x, np.array(step), weights, np.array(frame)],
        version=17,
        constants=[1, 3] + [2] * (window and constant),
        onesided=int(onesided),
    )[0]
    wide = x.astype(np.float64)
    signal = wide[..., 0] + (1j * wide[..., 1] if parts == 2 else 0)
    starts = range(0, length - frame + 1, step)
    seen = np.stack([signal[:, s : s + frame] for s in starts], 1)
    seen = seen * (weights if window else 1.0)
    right = np.fft.rfft(seen.real) if onesided else np.fft.fft(seen)
    check(got, right, frame, 2 * float(abs(seen).sum(-1).max()))


def test_stft_is_one_sided_unless_told() -> None:
    """ONNX's inference has the other default."""
    x = np.random.default_rng(3).standard_normal((2, 18, 1)).astype(np.float32)
    inputs = [x, np.array(4), None, np.array(7)]
    one, other = (
        run_node("STFT", inputs, version=17, constants=[1, 3], onesided=told)[0]
        for told in (None, 1)
    )
    assert one.shape == (2, 3, 4, 2)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("length", "frame", "step"), [(40, 16, 5), (33, 33, 3)])
def test_a_real_signal_may_lack_its_last_axis(
    length: int, frame: int, step: int
) -> None:
    """As ONNX Runtime has it."""
    x = np.random.default_rng(5).standard_normal((2, length, 1)).astype(np.float32)
    rest = [np.array(step), None, np.array(frame)]
    (right, *_), (got, *_) = (
        run_node("STFT", [signal, *rest], version=17, constants=[1, 3])
        for signal in (x, x[..., 0])
    )
    assert abs(right).max() > 1
    np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("shape", [(40,), (2, 40, 3), (2, 40, 1, 1)])
def test_what_is_no_signal_is_refused(shape: tuple[int, ...]) -> None:
    inputs = [np.zeros(shape, np.float32), np.array(5), None, np.array(16)]
    with pytest.raises(ModelError, match="STFT"):
        run_node("STFT", inputs, version=17, constants=[1, 3])


@pytest.mark.parametrize(("length", "frame", "step"), [(16, 11, 6), (16, 16, 3)])
def test_a_single_frame_is_compiled(length: int, frame: int, step: int) -> None:
    """What no frame reads of the signal is cut off."""
    x = np.random.default_rng(3).standard_normal((2, length, 1)).astype(np.float32)
    inputs = [x, np.array(step), None, np.array(frame)]
    words = {"onesided": 0}
    model, feeds = model_of("STFT", inputs, words, version=17, constants=[1, 3])
    (got,) = nanoloom.compile(model, threads=1)(feeds).values()
    seen = x[:, None, :frame, 0].astype(np.float64)
    check(got, np.fft.fft(seen), frame, 2 * float(abs(seen).sum(-1).max()))


@pytest.mark.parametrize("frame", [66, 134, 400, 2048])
def test_real_signals_are_taken_as_pairs(frame: int) -> None:
    """As programs: of lengths that are split further, and twice a prime."""
    r = np.random.default_rng(frame)
    x = r.standard_normal((2, 3 * frame, 1)).astype(np.float32)
    window = r.random(frame).astype(np.float32)
    inputs = [x, np.array(frame // 3), window, np.array(frame)]
    model, feeds = model_of("STFT", inputs, {}, version=17, constants=[1, 2, 3])
    (got,) = nanoloom.compile(model, threads=1)(feeds).values()
    starts = range(0, 2 * frame + 1, frame // 3)
    seen = np.stack([x[:, s : s + frame, 0] * np.float64(window) for s in starts], 1)
    check(got, np.fft.rfft(seen), frame, 2 * float(abs(seen).sum(-1).max()))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_dft_is_rounded_once(name: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, name, name))
    x = np.random.default_rng(1).standard_normal((1, 11, 1)).astype(kind)
    got = run_node("DFT", [x], version=20)[0]
    right = np.fft.fft(x[..., 0].astype(np.float64), axis=1)
    wanted = np.stack([right.real, right.imag], -1)
    bound = float(ml_dtypes.finfo(kind).eps) / 2 * abs(wanted) + 14 * EPS * 15
    assert got.dtype == kind
    assert (abs(got.astype(np.float64) - wanted) <= bound).all()


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(op: str, periodic: int) -> None:
    n = 13
    got = run_node(op, [np.array(n)], periodic=periodic, version=17)[0]
    t = 2 * np.pi * np.arange(n) / (n if periodic else n - 1)
    right = {
        "HannWindow": 0.5 - 0.5 * np.cos(t),
        "HammingWindow": 25 / 46 - 21 / 46 * np.cos(t),
        "BlackmanWindow": 0.42 - 0.5 * np.cos(t) + 0.08 * np.cos(2 * t),
    }[op]
    # The cosine's argument has 3 roundings at most, of size 4 pi at most.
    bound = (3 * 4 * np.pi + 8) * EPS
    assert (abs(got - right) <= bound).all() and got.shape == (n,)
    assert not (abs(0 * got - right) <= bound).all()


@pytest.mark.parametrize(
    "sizes", [(8, 64, 8192, 0.0, 4096.0), (5, 33, 16000, 100.0, 7000.0)]
)
def test_mel_weights(sizes: tuple[int, int, int, float, float]) -> None:
    inputs = [np.array(v) for v in sizes[:3]]
    inputs += [np.array(v, np.float32) for v in sizes[3:]]
    model, feeds = model_of("MelWeightMatrix", inputs, {}, version=17)
    right = ReferenceEvaluator(model).run(None, feeds)[0]
    got = run_node("MelWeightMatrix", inputs, version=17)[0]
    assert (abs(got - right) <= EPS).all() and right.any()


@given(st.integers(0, 6), st.sampled_from([(), (1,), (3,), (2, 2)]))
@few_examples(10)
def test_determinant(size: int, batch: tuple[int, ...]) -> None:
    x = np.random.default_rng(size).standard_normal((*batch, size, size))
    got = run_node("Det", [x])[0]
    # Backward error of elimination with pivots: growth (at most 2^n) * n * eps in |x|.
    growth = 2.0**size * max(size, 1) ** 2 * np.finfo(np.float64).eps
    bound = growth * np.prod(np.linalg.norm(x, axis=-1) + 1e-300, axis=-1)
    assert got.shape == batch
    assert (abs(got - np.linalg.det(x)) <= bound).all()
    assert not (abs(0 * got - np.linalg.det(x)) <= bound).all()


def test_determinant_of_singular_and_permuted() -> None:
    x = np.array(
        [
            [[0, 1.0, 0], [0, 0, 1], [1, 0, 0]],
            [[1, 2, 3], [2, 4, 6], [0, 0, 1]],
            [[0, 1, 0], [1, 0, 0], [0, 0, 1]],
        ],
        np.float32,
    )
    assert run_node("Det", [x])[0].tolist() == [1, 0, -1]
    assert np.isnan(run_node("Det", [np.full((2, 2), np.nan)])[0])
