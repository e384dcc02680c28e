"""Released values as JSON and back, exactly."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any
from uuid import UUID

from tulle.core import registry
from tulle.core.errors import InputError
from tulle.core.validate import rational, text

_INLINE = 10_000
"""Arrays up to this many entries are written as readable lists, longer ones compressed."""

_WRITTEN: Mapping[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "date": (date, date.isoformat, date.fromisoformat),
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "decimal": (Decimal, str, Decimal),
    "uuid": (UUID, str, UUID),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
}
"""Values that keys and labels may have besides numbers and text, and how they are written."""


def encode(value: Any) -> Any:
    """Return a JSON-able form of a released value.

    Numbers and short arrays stay readable; kinds of data register a codec under the role "value".
    """
    import numpy as np

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        # JSON has no such number.
        return {"type": "float", "value": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return {"type": "fraction", "value": text(value)}
    for name, (kind, write, _) in _WRITTEN.items():
        if type(value) is kind:
            return {"type": name, "value": write(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value)
    if isinstance(value, Mapping):
        return {"type": "record", "value": {str(k): encode(v) for k, v in value.items()}}
    if isinstance(value, list | tuple):
        sequence = "tuple" if isinstance(value, tuple) else "list"
        return {"type": sequence, "value": [encode(v) for v in value]}
    for group in registry.groups("value"):
        for name, codec in registry.find("value", group).items():
            if isinstance(value, codec.type):
                return {"type": name, "value": codec.encode(value)}
    raise InputError(f"A {type(value).__name__} has no JSON form.")


def decode(data: Any) -> Any:
    """Read what :func:`encode` wrote."""
    if not isinstance(data, Mapping):
        return data
    kind, body = data["type"], data.get("value")
    if kind == "fraction":
        return rational(str(body))
    if kind == "float":
        return float(str(body))
    if kind in _WRITTEN:
        return _WRITTEN[kind][2](str(body))
    if kind == "array":
        return _decode_array(data)
    if kind == "record":
        return {k: decode(v) for k, v in dict(body or {}).items()}
    if kind == "list":
        return [decode(v) for v in body or ()]
    if kind == "tuple":
        return tuple(decode(v) for v in body or ())
    for group in registry.groups("value"):
        codecs = registry.find("value", group)
        if kind in codecs:
            return codecs[kind].decode(body)
    raise InputError(f"A released value of type {kind!r} is not known to this version of tulle.")


def _encode_array(array: Any) -> dict[str, Any]:
    header = {"type": "array", "dtype": array.dtype.str, "shape": list(array.shape)}
    if array.dtype.kind not in "biuf":
        raise InputError(f"Arrays of {array.dtype} have no JSON form.")
    if array.size <= _INLINE and array.dtype.kind != "f":
        return header | {"value": array.ravel().tolist()}
    import numpy as np

    flat = np.ascontiguousarray(array)
    if array.dtype.itemsize == 1 and array.dtype.kind in "bu" and bool((array <= 1).all()):
        # Eight zeros and ones to a byte: smaller, and much faster to compress.
        header, flat = header | {"bits": True}, np.packbits(flat)
    packed = zlib.compress(flat.tobytes(), 6)
    return header | {"packed": base64.b64encode(packed).decode("ascii")}


def _decode_array(data: Mapping[str, Any]) -> Any:
    import numpy as np

    if data.get("bits"):
        packed = np.frombuffer(zlib.decompress(base64.b64decode(data["packed"])), np.uint8)
        flat = np.unpackbits(packed, count=int(np.prod(data["shape"]))).astype(data["dtype"])
    elif "packed" in data:
        flat = np.frombuffer(zlib.decompress(base64.b64decode(data["packed"])), data["dtype"])
    else:
        flat = np.array(data["value"], dtype=data["dtype"])
    return flat.reshape(data["shape"]).copy()


def finite(data: Any) -> Any:
    """Return data that can be written as JSON.

    Numbers that have no end are left out, since JSON has none; dates, decimals and whatever else
    it has no form for are texts.

    Example:
        >>> finite({"low": 1.0, "high": float("inf"), "day": date(2024, 2, 29)})
        {'low': 1.0, 'high': None, 'day': '2024-02-29'}
    """
    if isinstance(data, float):
        return data if abs(data) < float("inf") else None
    if isinstance(data, dict):
        return {name: finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return data if data is None or isinstance(data, bool | int | str) else str(data)
