"""SQL aggregates over any joins, with whole participants protected.

The package itself can be called: ``tulle.sql("SELECT COUNT(*) FROM ...")`` builds a question, as
:func:`tulle.sql.queries.sql` does.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tulle.sql.keys.question import DiscoveredTable
    from tulle.sql.queries import SqlQuery
    from tulle.sql.tables.question import SqlTable
    from tulle.sql.unranged import UnrangedTable


class _Room(ModuleType):
    """A module that is also the function it is named after.

    Importing anything below ``tulle.sql`` puts this module where ``tulle.sql`` is looked up, so
    the question of the same name has to be the module.
    """

    def __call__(
        self, text: str, **options: Any
    ) -> SqlQuery | SqlTable | DiscoveredTable | UnrangedTable:
        """Ask for aggregates in SQL; see :func:`tulle.sql.queries.sql`."""
        from tulle.sql.queries import sql

        return sql(text, **options)


sys.modules[__name__].__class__ = _Room
