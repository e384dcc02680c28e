"""Names for the types of arrays, the same ones everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""Numbers of any type."""

Floats = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

Bytes = npt.NDArray[np.uint8]
"""Bits, packed or one in each byte."""
