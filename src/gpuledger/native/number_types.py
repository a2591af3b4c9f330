"""Which numpy type holds the numbers of an Arrow type?

Not `DataType.to_pandas_dtype`: up to version 25, Arrow cannot answer that without pandas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_NUMPY: dict[pa.DataType, np.dtype[Any]] = {
    pa.from_numpy_dtype(code): np.dtype(code)
    for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}


def numpy_type(kind: pa.DataType) -> np.dtype[Any]:
    """The numpy type of an Arrow type of whole numbers or floats."""
    return _NUMPY[kind]
