"""Tables come back scored: in their order and form, whatever batches rows were in."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pytest
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.errors import Error, InputError, Unsupported
from nanoloom.runtime.library import Instance
from nanoloom.runtime.rows import run_rows
from nanoloom.scoring import Scorer, each_row
from nanoloom.scoring.place import require_level
from nanoloom.target import by_name
from tests.scoring import models
from tests.scoring.models import numbers

Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def mlp(folder: Path) -> Path:
    return models.mlp(folder)


@pytest.fixture(scope="module")
def words(folder: Path) -> Path:
    return models.words(folder)


def reference(model: Path, **inputs: np.ndarray) -> list[np.ndarray]:
    return ReferenceEvaluator(onnx.load(model)).run(None, inputs)  # type: ignore - a list of arrays


@pytest.mark.parametrize("batch_rows", [1, 7, 64, 1000])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_table_is_scored(mlp: Path, batch_rows: int, threads: int) -> None:
    scorer = Scorer(mlp, keep=["id"], batch_rows=batch_rows, threads=threads)
    given = models.table(131)
    made = scorer(given)
    assert made.column_names == ["id", "y"] and made.schema == scorer.schema(
        given.schema
    )
    (expected,) = reference(mlp, x=models.features(131))
    # 129 terms of numbers about 1 in each exponent; softmax is 1-Lipschitz.
    assert np.abs(numbers(made["y"]) - expected).max() < 1e-3
    assert np.abs(numbers(made["y"])[::-1] - expected).max() > 0.1
    assert made["id"].to_pylist() == list(range(131))


@pytest.mark.parametrize("form", ["batch", "frame of Arrow", "arrays"])
def test_forms_of_tables(mlp: Path, form: str) -> None:
    scorer, given = Scorer(mlp, keep=["id"]), models.table(20)
    expected = scorer(given)
    if form == "batch":
        made = scorer(given.to_batches()[0])
        assert isinstance(made, pa.RecordBatch) and made.equals(
            expected.to_batches()[0]
        )
    elif form == "arrays":
        made = scorer({"id": np.arange(20), "x": models.features(20)})
        np.testing.assert_array_equal(made["y"], numbers(expected["y"]))
        assert made["id"].tolist() == list(range(20))
    else:
        parts = pa.concat_tables([given.slice(0, 7), given.slice(7)])
        assert parts["x"].num_chunks == 2 and scorer(parts).equals(expected)


@pytest.mark.parametrize("seed", range(3))
def test_rows_do_not_depend_on_their_batch(words: Path, seed: int) -> None:
    """reproducible=True: bit for bit, over sizes of batches, orders and parts."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 40, 60).tolist()
    ids = models.texts(lengths, seed)
    given = pa.table({"ids": ids, "mask": [np.ones(n, np.int64) for n in lengths]})
    whole = Scorer(words, reproducible=True, threads=1)(given)
    for batch_rows in (1, 5, 64):
        scorer = Scorer(words, reproducible=True, mask="mask", batch_rows=batch_rows)
        order = random.permutation(60)
        made = scorer(given.take(pa.array(order)))
        assert made.take(pa.array(np.argsort(order))).equals(whole)
    begin = int(random.integers(1, 50))
    assert scorer(given.slice(begin, 9)).equals(whole.slice(begin, 9).combine_chunks())


@pytest.mark.parametrize("mask", [None, "mask"])
@pytest.mark.parametrize("has_column", [True, False])
def test_lengths_are_bucketed_and_order_is_restored(
    words: Path, mask: str | None, has_column: bool
) -> None:
    lengths = np.random.default_rng(1).integers(1, 70, 90).tolist()
    ids = models.texts(lengths, 2)
    columns = {"ids": pa.array(ids)}
    if has_column or mask is None:
        columns["mask"] = pa.array([np.ones(n, np.int64) for n in lengths])
    fill = None if mask is None else {"ids": models.VOCABULARY - 1}
    made = Scorer(words, mask=mask, fill=fill, batch_rows=16)(pa.table(columns))
    table = models.weight((models.VOCABULARY, 8), 0)
    for i, row in enumerate(ids):
        np.testing.assert_array_equal(
            np.array(made["each"][i].as_py(), "f"), table[row]
        )
        error = np.abs(
            np.array(made["mean"][i].as_py()) - table[row].mean(axis=0, dtype="d")
        )
        assert error.max() <= (len(row) + 2) * np.finfo("f").eps * np.abs(table).max()


def test_a_program_of_a_fixed_batch_is_filled_up(folder: Path) -> None:
    path = models.write(folder, models.PAIRS)
    x = models.features(11, wide=3)
    for reproducible in (False, True):
        scorer = Scorer(path, reproducible=reproducible)
        np.testing.assert_allclose(
            scorer({"x": x})["y"], x.sum(1), rtol=1e-5, atol=1e-6
        )
    assert scorer({"x": x[:0]})["y"].shape == (0,)


def test_batches_are_no_larger_than_the_bounds(mlp: Path) -> None:
    program = nanoloom.compile(mlp, dims={"batch": (1, 5)}, threads=1)
    with pytest.raises(InputError, match="at most 5"):
        program(models.features(6))
    assert Scorer(program)(models.table(33)).num_rows == 33
    assert Scorer(mlp, dims={"batch": (1, 5)})(models.table(6)).num_rows == 6


def test_columns_of_numbers_are_features(mlp: Path) -> None:
    x = models.features(9)
    names = [f"f{i}" for i in range(50)]
    given = pa.table({name: x[:, i] for i, name in enumerate(names)})
    made = Scorer(mlp, columns={"x": names})(given)
    np.testing.assert_array_equal(numbers(made["y"]), Scorer(mlp)({"x": x})["y"])


def test_errors_of_rows_have_a_column(words: Path) -> None:
    """Nulls, lengths that differ between inputs, and an index beyond the table."""
    ids = [[1, 2], None, [3, 999, 4], [5], [6, 7]]
    mask = [[1, 1], [1], [1, 1, 1], [1], [1, None]]
    kind = pa.list_(pa.int64())
    given = pa.table({"ids": pa.array(ids, kind), "mask": pa.array(mask, kind)})
    made = Scorer(words, errors="column", threads=2)(given)
    assert made["error"].null_count == 2
    assert [made["error"][i].is_valid for i in range(5)] == [
        False,
        True,
        True,
        False,
        True,
    ]
    assert "999 is outside" in made["error"][2].as_py()
    assert [made["mean"][i].is_valid for i in range(5)] == [
        True,
        False,
        False,
        True,
        False,
    ]
    good = Scorer(words)(given.take(pa.array([0, 3])))
    assert made.drop(["error"]).take(pa.array([0, 3])).equals(good)
    with pytest.raises(InputError, match=r"row 1: input ids: is null; errors="):
        Scorer(words)(given)


@pytest.mark.parametrize("all_wrong", [False, True])
def test_the_schema_does_not_depend_on_the_rows(words: Path, all_wrong: bool) -> None:
    scorer = Scorer(words, errors="column")
    ids = pa.array([None, None] if all_wrong else [], pa.list_(pa.int64()))
    given = pa.table({"ids": ids, "mask": ids})
    made = scorer(given)
    made.validate(full=True)
    assert made.schema == scorer.schema(given.schema)
    assert made["error"].to_pylist() == ["input ids: is null"] * len(ids)


def test_types_change_where_no_value_can(mlp: Path) -> None:
    x = np.round(models.features(4) * 8)
    exact = Scorer(mlp)({"x": x})["y"]
    np.testing.assert_array_equal(Scorer(mlp)({"x": x.astype(np.int16)})["y"], exact)
    wide = {"x": x.astype(np.float64)}
    with pytest.raises(InputError, match="is float64, the model wants float32; cast"):
        Scorer(mlp)(wide)
    np.testing.assert_array_equal(Scorer(mlp, convert=True)(wide)["y"], exact)
    with pytest.raises(InputError, match="is int32"):  # 24 bits are exact
        Scorer(mlp)({"x": x.astype(np.int32)})


def test_it_pickles_as_digest_and_place(mlp: Path) -> None:
    given = models.table(5)
    for scorer in (Scorer(mlp), Scorer(nanoloom.compile(mlp))):
        pickled = pickle.dumps(scorer)
        assert len(pickled) < 10_000 < mlp.stat().st_size
        back = pickle.loads(pickled)
        assert (
            back.place == scorer.place
            and back.place.program() is scorer.place.program()
        )
        assert back(given).equals(scorer(given))


def test_a_library_is_a_model_too(mlp: Path, tmp_path: Path) -> None:
    path = nanoloom.compile(mlp).save(tmp_path / "mlp.so")
    scorer = pickle.loads(pickle.dumps(Scorer(path)))
    assert scorer(models.table(70)).equals(Scorer(mlp)(models.table(70)))
    (tmp_path / "mlp.so").unlink()
    again = Scorer(nanoloom.compile(mlp).save(tmp_path / "other.so"))
    (tmp_path / "other.so").unlink()
    with pytest.raises(Error, match="this machine has no such file"):
        again(models.table(1))


def test_a_level_is_the_same_code_everywhere(mlp: Path) -> None:
    level = "x86-64-v3" if by_name("x86-64-v3").arch == "x86_64" else ""
    scorer = Scorer(mlp, level=level)
    assert scorer.place.program().options.target == by_name(level)  # type: ignore - no library is given: a Program
    assert pickle.loads(pickle.dumps(scorer)).place == scorer.place
    lower = by_name("x86-64-v2")
    with pytest.raises(Unsupported, match=r"x86-64-v4 needs avx2, .*; name a lower"):
        require_level(by_name("x86-64-v4"), lower)
    with pytest.raises(Unsupported, match="rv64gcv needs riscv64"):
        require_level(by_name("rv64gcv"), lower)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": {"z": "x"}}, "z: the model has no such input"),
        ({"columns": {"x": "w"}}, "input x: the table has no column 'w'"),
        ({"outputs": ["z"]}, "output z: the model has no such output"),
        ({"keep": ["y"]}, "would have two columns y"),
        ({"keep": ["w"]}, "keep: the table has no column 'w'"),
        ({"errors": "ignore"}, "errors is 'ignore'; give raise or column"),
        ({"batch_rows": 0}, "batch_rows is 0"),
        ({"fill": {"x": 0}}, "no mask that says"),
        ({"mask": "m"}, "m: the model has no such input"),
        ({"level": "pentium"}, "no target named 'pentium'"),
    ],
)
def test_refusals(mlp: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(Error, match=said):
        Scorer(mlp, **options)(models.table(2))  # type: ignore[arg-type] - wrong on purpose


def test_tables_that_are_none(mlp: Path) -> None:
    scorer = Scorer(mlp)
    with pytest.raises(InputError, match="table: is a list"):
        scorer([1, 2])
    with pytest.raises(InputError, match="wants float32 50"):
        scorer({"x": models.features(3, wide=49)})
    with pytest.raises(InputError, match="column x: is one number"):
        scorer({"x": np.array(1.0)})


def test_reproducible_rows_are_run_together(
    mlp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    def counted(instance: Instance, arrays: Arrays) -> Arrays | None:
        counts.append(len(arrays["x"]))
        return run_rows(instance, arrays)

    monkeypatch.setattr(each_row, "run_rows", counted)
    scorer = Scorer(mlp, reproducible=True, batch_rows=50, threads=1)
    x = models.features(131)
    made = scorer({"x": x})["y"]
    assert counts == [50, 50, 31]
    alone = [scorer({"x": x[i : i + 1]})["y"] for i in range(131)]
    np.testing.assert_array_equal(made, np.concatenate(alone))


def test_a_row_that_fails_among_reproducible_ones(words: Path) -> None:
    ids = [[1, 2], [3, models.VOCABULARY], [4, 5], [6, 7]]
    given = pa.table({"ids": ids, "mask": [[1, 1]] * 4})
    scorer = Scorer(words, reproducible=True, errors="column")
    made = scorer(given)
    assert [error is None for error in made["error"].to_pylist()] == [1, 0, 1, 1]
    good = scorer(given.take([0, 2, 3]))
    assert made.take([0, 2, 3]).drop("error").equals(good.drop("error"))


def test_a_library_runs_its_rows_alone(mlp: Path, tmp_path: Path) -> None:
    path = nanoloom.compile(mlp).save(tmp_path / "mlp.so")
    x, scorer = models.features(70), Scorer(path, reproducible=True)
    made = scorer({"x": x})["y"]
    for i in (0, 33, 69):
        np.testing.assert_array_equal(made[i], scorer({"x": x[i : i + 1]})["y"][0])
