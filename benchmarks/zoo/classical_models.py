"""Models of scikit-learn, LightGBM and XGBoost, fitted to seeded numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.zoo.entry import Entry, Exported

ROWS, COLUMNS = 300, 12
# Class and arguments; which module it is of is asked of scikit-learn itself.
CLASSIFIERS = """
LogisticRegression SGDClassifier(loss="log_loss") LinearSVC SVC SVC(probability=True)
NuSVC RidgeClassifier Perceptron GaussianNB BernoulliNB DecisionTreeClassifier
RandomForestClassifier(n_estimators=100) ExtraTreesClassifier(n_estimators=200)
GradientBoostingClassifier HistGradientBoostingClassifier AdaBoostClassifier
BaggingClassifier KNeighborsClassifier MLPClassifier(max_iter=50)
LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis
GaussianProcessClassifier(max_iter_predict=5)
"""
REGRESSORS = """
LinearRegression Ridge Lasso ElasticNet BayesianRidge HuberRegressor SVR LinearSVR
DecisionTreeRegressor RandomForestRegressor(n_estimators=100) ExtraTreesRegressor
GradientBoostingRegressor HistGradientBoostingRegressor AdaBoostRegressor
KNeighborsRegressor MLPRegressor(max_iter=50) PLSRegression GaussianProcessRegressor
PoissonRegressor TweedieRegressor
"""
TRANSFORMERS = """
StandardScaler MinMaxScaler MaxAbsScaler RobustScaler Normalizer PolynomialFeatures
PowerTransformer QuantileTransformer(n_quantiles=20) KBinsDiscretizer Binarizer PCA
TruncatedSVD SimpleImputer KMeans VarianceThreshold KNNImputer
"""
BOOSTERS = """
lightgbm.LGBMClassifier lightgbm.LGBMRegressor xgboost.XGBClassifier
xgboost.XGBRegressor xgboost.XGBRFClassifier xgboost.XGBRFRegressor
"""


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    target = (x[:, 0] * x[:, 1] + x[:, 2]).astype(np.float32)
    return x, np.digitize(target, [-0.7, 0.7]), target - target.min() + 0.1


def made(text: str) -> Any:
    """`Name(arguments)` of scikit-learn, or `module.Name` of a booster."""
    name, _, rest = text.partition("(")
    if "." in name:
        module, _, name = name.partition(".")
        found = getattr(__import__(module), name)
        return found(n_estimators=100)
    from sklearn.utils import all_estimators

    arguments = eval(f"dict({rest}" if rest else "dict()")
    return dict(all_estimators())[name](**arguments)


def converted(text: str, labels: str, folder: Path) -> Exported:
    """labels: classes, numbers or nothing, for a transformer."""
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType as ToolType
    from skl2onnx.common.data_types import FloatTensorType

    x, classes, numbers = data()
    model = made(text)
    target = {"classes": classes, "numbers": numbers}.get(labels)
    model.fit(x) if target is None else model.fit(x, target)
    path, given = folder / "model.onnx", x[:50]
    if "." in text:
        convert = getattr(onnxmltools, f"convert_{text.partition('.')[0]}")
        proto = convert(model, initial_types=[("x", ToolType([None, COLUMNS]))])
    else:
        proto = by_skl2onnx(model, FloatTensorType([None, COLUMNS]))
    path.write_bytes(proto.SerializeToString())
    return Exported(path, {"x": given}, [])


def by_skl2onnx(model: Any, kind: Any) -> Any:
    """With scores as a tensor, for those that could give them as maps."""
    import skl2onnx

    try:
        return skl2onnx.convert_sklearn(
            model, initial_types=[("x", kind)], options={id(model): {"zipmap": False}}
        )
    except NameError:  # that is what it raises for models that have no such option
        return skl2onnx.convert_sklearn(model, initial_types=[("x", kind)])


def entries() -> Iterator[Entry]:
    groups: list[tuple[str, Callable[[str], str]]] = [
        (CLASSIFIERS, lambda _: "classes"),
        (REGRESSORS, lambda _: "numbers"),
        (TRANSFORMERS, lambda _: ""),
        (BOOSTERS, lambda x: "numbers" if x.endswith("Regressor") else "classes"),
    ]
    for words, labels in groups:
        for text in words.split():
            kind, way = "scikit-learn", "skl2onnx"
            if "." in text:
                kind, way = text.partition(".")[0], "onnxmltools"
            yield Entry(kind, text, way, partial(converted, text, labels(text)))
