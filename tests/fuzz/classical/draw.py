"""A fitted model and its export, of a seed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx

from tests.fuzz.classical.estimators import (
    CLASSIFIERS,
    IMPUTERS,
    OUTLIERS,
    REGRESSORS,
    TRANSFORMERS,
    Choices,
)

Rng = np.random.Generator
Array = np.ndarray[Any, np.dtype[Any]]
WHOLE = {"classes": CLASSIFIERS, "numbers": REGRESSORS, "none": TRANSFORMERS}
QUIET = {"lightgbm": {"verbose": -1}, "xgboost": {"verbosity": 0}}
OPSETS = (None, None, 9, 11, 12, 13, 15, 17, 18)
WORDS = np.array(["red", "green", "a longer word", "", "blau\u00e4"])


class NotExported(Exception):
    """No estimator fits, or its exporter cannot write it: another case is drawn."""


@dataclass(frozen=True)
class Exported:
    """name: the estimator's words."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]


@dataclass
class Draw:
    """rng: the case's.  rows, columns: of the features that it is fitted to."""

    rng: Rng
    rows: int
    columns: int

    def pick(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def features(self, nans: bool) -> Array:
        """Numbers as tables have them: wide, whole, of few values, equal."""
        x = self.rng.normal(0, 2, (self.rows, self.columns))
        for column in range(self.columns):
            way = self.pick(["wide", "whole", "few", "none", "none"])
            if way == "wide":
                x[:, column] *= 1000
            elif way == "whole":
                x[:, column] = np.round(x[:, column])
            elif way == "few":
                x[:, column] = self.rng.integers(0, 3, self.rows)
        if nans:
            x[self.rng.random(x.shape) < 0.1] = np.nan
        return x.astype(np.float32)

    def target(self, x: Array, labels: str) -> Array | None:
        score = np.nan_to_num(x).sum(1) + self.rng.normal(0, 1, len(x))
        order = np.argsort(np.argsort(score))
        if labels == "none":
            return None
        if labels == "numbers":
            return (order / len(x) + 0.1).astype(np.float32)
        classes = order * int(self.rng.integers(2, 5)) // len(x)
        names = self.pick([np.arange(5), np.array([7, -3, 0, 40, 2]), WORDS])
        return names[classes]

    def estimator(
        self, name: str, choices: Choices, inner: Mapping[str, Choices]
    ) -> Any:
        """One by its name; inner: what one that is made of others has inside."""
        given = {k: self.pick(v) for k, v in choices.items() if self.chance(0.7)}
        if name == "LocalOutlierFactor":
            given["novelty"] = True
        if name.startswith(("Voting", "Stacking")):
            some = [(f"e{i}", self.plain(inner)) for i in range(2)]
            given["estimators"] = some
        elif name.startswith(("Bagging", "Calibrated", "OneVs")) and self.chance(0.7):
            given["estimator"] = self.plain(inner)
        elif name in ("OneVsOneClassifier", "OneVsRestClassifier"):
            given["estimator"] = self.estimator("LogisticRegression", {}, inner)
        return class_of(name)(**given)

    def plain(self, inner: Mapping[str, Choices]) -> Any:
        made_of = ("Voting", "Stacking", "Bagging", "Calibrated", "OneVs")
        names = [x for x in inner if not x.startswith(made_of) and "." not in x]
        name = self.pick(names)
        return self.estimator(name, inner[name], inner)

    def model(self, labels: str, nans: bool) -> tuple[str, Any]:
        """The estimator, with up to two transformers in front of it."""
        from sklearn.pipeline import make_pipeline, make_union

        table = OUTLIERS if labels == "none" and self.chance(0.2) else WHOLE[labels]
        name = self.pick(list(table))
        last = self.estimator(name, table[name], table)
        if "." in name:
            return name, last
        front: list[Any] = []
        if nans:
            imputer = self.pick(list(IMPUTERS))
            front.append(self.estimator(imputer, IMPUTERS[imputer], {}))
        for _ in range(int(self.rng.integers(0, 3))):
            word = self.pick(list(TRANSFORMERS))
            step = self.estimator(word, TRANSFORMERS[word], {})
            front.append(make_union(step, "passthrough") if self.chance(0.2) else step)
        whole = make_pipeline(*front, last) if front else last
        return " ".join(repr(whole).split()), whole


def class_of(name: str) -> Any:
    from sklearn.utils import all_estimators

    module, _, word = name.rpartition(".")
    if module:
        return partial(getattr(__import__(module), word), **QUIET[module])
    known = dict(all_estimators())
    if word not in known:
        raise NotExported(f"no {word} here")
    return known[word]


def drawn(rng: Rng) -> Exported:
    """The export of a fitted model and what it is called with.

    Raises NotExported where there is none.
    """
    d = Draw(rng, int(rng.integers(20, 80)), int(rng.integers(2, 7)))
    labels, nans = d.pick(["classes", "classes", "numbers", "none"]), d.chance(0.15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            name, model = d.model(labels, nans)
            x = d.features(nans)
            y = d.target(x, labels)
            np.random.seed(int(rng.integers(1000)))  # of estimators without one
            model.fit(np.abs(x) if "NB" in name else x, *([] if y is None else [y]))
            proto = exported(d, name, model)
        except NotExported:
            raise
        except Exception as error:  # noqa: BLE001 - fitting and exporters raise anything
            raise NotExported(f"{type(error).__name__}: {error}") from None
    given = d.pick([x, x[:1], x[:7], d.features(nans)])
    return Exported(name, proto, {"x": np.abs(given) if "NB" in name else given})


def exported(d: Draw, name: str, model: Any) -> onnx.ModelProto:
    """By the exporter of its library, with one of its options."""
    if "." in name:
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType as ToolType

        convert = getattr(onnxmltools, f"convert_{name.partition('.')[0]}")
        return convert(
            model,
            initial_types=[("x", ToolType([None, d.columns]))],
            target_opset=d.pick([None, 9, 12, 15]),
        )
    import skl2onnx
    from skl2onnx.common.data_types import FloatTensorType

    rows = d.pick([None, None, "rows"])
    kind = FloatTensorType([rows, d.columns])
    options = d.pick(
        [{}, {"zipmap": False}, {"zipmap": "columns"}, {"raw_scores": True},
         {"zipmap": False, "raw_scores": True}, {"zipmap": False, "nocl": True}]
    )  # fmt: skip
    if not hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
        options = {}
    opset = d.pick(OPSETS)
    try:
        return skl2onnx.convert_sklearn(
            model,
            initial_types=[("x", kind)],
            options={id(model): options} if options else None,
            target_opset=opset,
        )
    except NameError:  # that is what it raises for models that have no such option
        return skl2onnx.convert_sklearn(
            model, initial_types=[("x", kind)], target_opset=opset
        )
