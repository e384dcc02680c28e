"""Types that a column of Spark may have, and texts of their values: ordinary and odd ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tests.sql.sql_types import NEAR, ODD, TAME

SPARK = {
    **{
        kind: f"TRY_CAST({{}} AS {kind})"
        for kind in (
            *("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "date"),
            *("timestamp", "timestamp_ntz", "decimal(4,1)", "decimal(38,0)", "decimal(38,37)"),
            *("decimal(20,2)", "interval day to second", "interval year to month"),
        )
    },
    "string": "{}",
    "binary": "CAST({} AS BINARY)",
    "string collate UTF8_LCASE": "{} COLLATE UTF8_LCASE",
    "string that is no UTF-8": "CAST(TRY_TO_BINARY({}, 'hex') AS STRING)",
    "variant": "TRY_PARSE_JSON({})",
    **{
        kind: f"FROM_JSON({{}}, '{kind}')"
        for kind in ("array<string>", "array<double>", "array<bigint>", "map<string,int>")
    },
    "struct<a:int,b:string>": "FROM_JSON({}, 'a INT, b STRING')",
}
"""How a column of each type is made of texts; what a type does not take is NULL."""

_MORE = (
    *("FF", "C3", "e282", "A", "[a, b]", '["a, b"]', '["a", "b"]', "1 00:00:00", "5-0"),
    *("106751991 04:00:54.775807", "-178956970-8", "-5877641-06-23", "+5881580-07-11"),
    *("+294247-01-10 04:00:54.775807", "-290308-12-21 19:59:06", "[9007199254740993]"),
    *("2020-11-01 01:30:00-04:00", "2020-11-01 01:30:00-05:00", "2020-11-01 01:30:00"),
    *("[9007199254740992]", "9007199254740993.0"),
)
SPARK_POOL = tuple(dict.fromkeys((*TAME, *ODD, *NEAR, *_MORE)))
"""Texts of all kinds of values; of one hour that is there twice in New York, too."""


@lru_cache(maxsize=1)
def taken(session: Any) -> dict[str, tuple[str, ...]]:
    """Return the texts that each type takes; those of one value are all there."""
    names = list(SPARK)
    tried = [f"({SPARK[name].format('x')}) IS NOT NULL AS c{i}" for i, name in enumerate(names)]
    frame = session.createDataFrame([(text,) for text in SPARK_POOL], "x STRING")
    rows = frame.selectExpr("x", *tried).collect()
    return {name: tuple(row[0] for row in rows if row[1 + i]) for i, name in enumerate(names)}
