"""Names for the array types that pass between kernels."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Int8Array: TypeAlias = npt.NDArray[np.int8]
Int32Array: TypeAlias = npt.NDArray[np.int32]
Int64Array: TypeAlias = npt.NDArray[np.int64]
Float64Array: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
UInt64Array: TypeAlias = npt.NDArray[np.uint64]
UnsignedArray: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]
ScoreArray: TypeAlias = npt.NDArray[np.floating[Any]]
"""Scores in the precision of the run: float32 or float64."""

Precision: TypeAlias = Literal["float32", "float64"]
Direction: TypeAlias = Literal["out", "in", "both"]
DanglingRule: TypeAlias = Literal["seeds", "self", "uniform", "drop"]
DuplicateRule: TypeAlias = Literal["sum", "max", "min", "mean"]
SourceNormalization: TypeAlias = Literal["sum", "none", "minmax", "max"]
