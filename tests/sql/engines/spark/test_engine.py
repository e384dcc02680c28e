"""What only the engine for Spark has to take care of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tulle.core.errors import QueryError
from tulle.sql.engines.base import EngineError
from tulle.sql.engines.spark.engine import Spark


class TooDeep:
    """A session whose planner overflows; rows that are asked for never come."""

    def sql(self, _statement: str) -> Any:
        def overflow() -> None:
            raise RuntimeError("java.lang.StackOverflowError")

        def wait() -> None:
            pytest.fail("Spark hands rows over in a thread of its own, which would die unnoticed.")

        execution = SimpleNamespace(executedPlan=overflow)
        planner = SimpleNamespace(queryExecution=lambda: execution)
        return SimpleNamespace(schema=None, _jdf=planner, toArrow=wait)


def test_a_statement_that_overflows_the_planner_is_refused_and_not_waited_for() -> None:
    engine = Spark.__new__(Spark)
    engine._session = TooDeep()
    engine._levels = {}
    with pytest.raises(QueryError, match="Nothing was spent"):
        engine.check("SELECT 1")
    with pytest.raises(EngineError):
        engine.fetch("SELECT 1")
