"""Which estimators are drawn, and with what; each choice as likely as the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Choices = Mapping[str, Sequence[Any]]

TREE: Choices = {"max_depth": [None, 1, 3], "min_samples_leaf": [1, 5]}
FOREST: Choices = {"n_estimators": [1, 7], **TREE}
LINEAR: Choices = {"fit_intercept": [True, False]}
KERNELS: Choices = {
    "kernel": ["linear", "poly", "rbf", "sigmoid"],
    "gamma": [0.1, "scale"],
}
LAYERS: Choices = {
    "hidden_layer_sizes": [(5,), (9, 4)],
    "activation": ["identity", "logistic", "tanh", "relu"],
    "max_iter": [20],
}
NEIGHBOURS: Choices = {"n_neighbors": [1, 5], "weights": ["uniform", "distance"]}

CLASSIFIERS: Mapping[str, Choices] = {
    "AdaBoostClassifier": {"n_estimators": [1, 5]},
    "BaggingClassifier": {"n_estimators": [1, 4]},
    "BernoulliNB": {"binarize": [0.0, 0.5]},
    "CalibratedClassifierCV": {"method": ["sigmoid", "isotonic"], "cv": [2]},
    "ComplementNB": {"norm": [True, False]},
    "DecisionTreeClassifier": TREE,
    "ExtraTreesClassifier": FOREST,
    "GaussianNB": {},
    "GaussianProcessClassifier": {"max_iter_predict": [5]},
    "GradientBoostingClassifier": {"n_estimators": [1, 7]},
    "HistGradientBoostingClassifier": {"max_iter": [1, 7], "max_depth": [None, 2]},
    "KNeighborsClassifier": NEIGHBOURS,
    "LinearDiscriminantAnalysis": {"solver": ["svd", "lsqr"]},
    "LinearSVC": {"C": [0.1, 1.0], **LINEAR},
    "LogisticRegression": {"C": [0.1, 1.0], **LINEAR},
    "MLPClassifier": LAYERS,
    "MultinomialNB": {"alpha": [0.5, 1.0]},
    "NuSVC": {"nu": [0.1], **KERNELS},
    "OneVsOneClassifier": {},
    "OneVsRestClassifier": {},
    "PassiveAggressiveClassifier": LINEAR,
    "Perceptron": LINEAR,
    "QuadraticDiscriminantAnalysis": {"reg_param": [0.1]},
    "RandomForestClassifier": FOREST,
    "RidgeClassifier": LINEAR,
    "SGDClassifier": {"loss": ["hinge", "log_loss", "modified_huber"], **LINEAR},
    "SVC": {"probability": [True, False], **KERNELS},
    "StackingClassifier": {"cv": [2]},
    "VotingClassifier": {"voting": ["hard", "soft"]},
    "lightgbm.LGBMClassifier": {"n_estimators": [1, 6], "num_leaves": [3, 31]},
    "xgboost.XGBClassifier": {"n_estimators": [1, 6], "max_depth": [1, 4]},
    "xgboost.XGBRFClassifier": {"n_estimators": [1, 6]},
}
REGRESSORS: Mapping[str, Choices] = {
    "ARDRegression": LINEAR,
    "AdaBoostRegressor": {"n_estimators": [1, 5]},
    "BaggingRegressor": {"n_estimators": [1, 4]},
    "BayesianRidge": LINEAR,
    "DecisionTreeRegressor": TREE,
    "ElasticNet": {"alpha": [0.01], **LINEAR},
    "ExtraTreesRegressor": FOREST,
    "GammaRegressor": LINEAR,
    "GaussianProcessRegressor": {"alpha": [0.1]},
    "GradientBoostingRegressor": {"n_estimators": [1, 7]},
    "HistGradientBoostingRegressor": {"max_iter": [1, 7]},
    "HuberRegressor": LINEAR,
    "KNeighborsRegressor": NEIGHBOURS,
    "Lars": LINEAR,
    "Lasso": {"alpha": [0.01], **LINEAR},
    "LinearRegression": LINEAR,
    "LinearSVR": LINEAR,
    "MLPRegressor": LAYERS,
    "NuSVR": KERNELS,
    "OrthogonalMatchingPursuit": LINEAR,
    "PLSRegression": {"n_components": [1]},
    "PoissonRegressor": LINEAR,
    "QuantileRegressor": LINEAR,
    "RANSACRegressor": {},
    "RandomForestRegressor": FOREST,
    "Ridge": LINEAR,
    "SGDRegressor": {"loss": ["squared_error", "huber"], **LINEAR},
    "SVR": KERNELS,
    "StackingRegressor": {"cv": [2]},
    "TheilSenRegressor": LINEAR,
    "TweedieRegressor": {"power": [0, 1, 1.5], **LINEAR},
    "VotingRegressor": {},
    "lightgbm.LGBMRegressor": {"n_estimators": [1, 6], "num_leaves": [3, 31]},
    "xgboost.XGBRegressor": {"n_estimators": [1, 6], "max_depth": [1, 4]},
    "xgboost.XGBRFRegressor": {"n_estimators": [1, 6]},
}
# What only changes features; the first row also takes NaN.
IMPUTERS: Mapping[str, Choices] = {
    "KNNImputer": {"n_neighbors": [1, 3]},
    "SimpleImputer": {"strategy": ["mean", "median", "most_frequent"]},
}
TRANSFORMERS: Mapping[str, Choices] = {
    "Binarizer": {"threshold": [0.0, 0.5]},
    "FastICA": {"max_iter": [20]},
    "FunctionTransformer": {},
    "IncrementalPCA": {},
    "KBinsDiscretizer": {
        "n_bins": [2, 4],
        "encode": ["ordinal", "onehot-dense", "onehot"],
        "strategy": ["uniform", "quantile"],
    },
    "KMeans": {"n_clusters": [2, 3]},
    "KernelPCA": {"kernel": ["linear", "rbf"], "n_components": [2]},
    "MaxAbsScaler": {},
    "MinMaxScaler": {"clip": [True, False]},
    "MiniBatchKMeans": {"n_clusters": [2, 3]},
    "Normalizer": {"norm": ["l1", "l2", "max"]},
    "PCA": {"whiten": [True, False]},
    "PolynomialFeatures": {"degree": [2, 3], "interaction_only": [True, False]},
    "PowerTransformer": {"standardize": [True, False]},
    "QuantileTransformer": {"n_quantiles": [9]},
    "RobustScaler": {"with_centering": [True, False]},
    "SplineTransformer": {"n_knots": [3]},
    "StandardScaler": {"with_mean": [True, False], "with_std": [True, False]},
    "TruncatedSVD": {"n_components": [1]},
    "VarianceThreshold": {},
}
OUTLIERS: Mapping[str, Choices] = {
    "GaussianMixture": {"n_components": [1, 3], "covariance_type": ["full", "diag"]},
    "IsolationForest": {"n_estimators": [1, 7]},
    "LocalOutlierFactor": {"novelty": [True]},
    "OneClassSVM": KERNELS,
}
