"""What the oracle allows for: roundings, scales, coordinates, and what is not drawn."""

from __future__ import annotations

from nanoloom.linalg.special import table as special

# Which reference rounds what to 32 bits, though its operands are 64-bit floats.
COARSE: dict[tuple[str, str], str] = {
    ("ort", "DFT"): "its roots of one are rounded to 32 bits",
    ("ort", "Gelu"): "its constants are rounded to 32 bits",
    ("ort", "GroupNormalization"): "its statistics have 32 bits, as stash_type says",
    ("ort", "HardSwish"): "it has 1/6 in 32 bits",
    ("reference", "Gelu"): "its constants are rounded to 32 bits",
    ("ort", "Shrink"): "its operands are rounded to 32 bits",
    ("reference", "Erf"): "its results are rounded to 32 bits",
    ("reference", "OneHot"): "it multiplies and adds where others choose",
    ("reference", "HardSwish"): "it has 1/6 in 64 bits, the definition has 32",
}

# Scales that ONNX does not say how to multiply, by place among the inputs: a trial
# changes them by a few roundings, since the results are integers.
SCALES: dict[str, tuple[int, ...]] = {
    "QLinearMatMul": (1, 4, 6),
    "QLinearConv": (1, 4, 6),
}

# Coordinates, which are rounded before anything is looked up there.
COORDINATES: dict[str, tuple[int, ...]] = {
    "DeformConv": (2,),
    "GridSample": (1,),
    "MaxRoiPool": (1,),
    "RoiAlign": (1,),
}

# Roundings of a result whose weights are differences of coordinates.
WEIGHTED: dict[str, float] = {"Resize": 256.0, "Upsample": 256.0, "RoiAlign": 256.0}

# Element types that an operator is not drawn with, and why.
OPEN: dict[str, tuple[str, str]] = {
    "ReduceLogSumExp": ("iu", "a logarithm near a whole number is cut off either way"),
}

# Operators without a recipe, and why.
NOT_DRAWN: dict[str, str] = {
    "nanoloom.integer.Convolution": "only nanoloom itself writes it",
    "nanoloom.integer.MatMul": "only nanoloom itself writes it",
    "nanoloom.integer.AveragePool": "only nanoloom itself writes it",
    "nanoloom.integer.GlobalAveragePool": "only nanoloom itself writes it",
    "nanoloom.integer.Sum": "only nanoloom itself writes it",
    "nanoloom.integer.Table": "only nanoloom itself writes it",
    "nanoloom.binary.BitConvolution": "only nanoloom itself writes it",
    "nanoloom.binary.BitMatMul": "only nanoloom itself writes it",
    "nanoloom.binary.Pack": "only nanoloom itself writes it",
    "Append": "only nanoloom itself writes it",
    "Fails": "only nanoloom itself writes it",
    "CountedTopK": "only nanoloom itself writes it",
    "SortedSlices": "only nanoloom itself writes it",
    "Places": "only nanoloom itself writes it",
    "SameSize": "only nanoloom itself writes it",
    "Suppressed": "only nanoloom itself writes it",
    **dict.fromkeys(special.OPERATORS, "drawn in tests/linalg/special"),
    # The reference's probabilities of three and more classes are not libsvm's.
    "ai.onnx.ml.SVMClassifier": "drawn in tests/linalg/classical/test_svm.py",
    "ai.onnx.ml.SVMRegressor": "drawn in tests/linalg/classical/test_svm.py",
}
