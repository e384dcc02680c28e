"""The audit: every bound, distribution and sampler is checked, and so are the checks.

* ``exhaustive``: each inequality that a proof rests on, on all small datasets and neighbours.
* ``exact``: whole output distributions of neighbours against the stated guarantee, and real
  draws against those distributions.
* ``fresh``: noise is new every time and comes from the source asked for.
* ``blackbox``: a lower bound on epsilon from draws alone, with a stated power.
* ``failures``: neighbours fail alike and say nothing in between.
* ``cost``: every draw is charged for, and all of a run's draws cost its price.
* ``faults``: mechanisms that are wrong on purpose; the same checks must reject them.

``engine.kind`` says what a kind of data must provide to be audited; each room has a folder with its
``kind`` and its ``faults``. ``table`` puts all of it together.
"""

from tulle.audit.engine.blackbox import Evidence, find_pairs, lower_bound, one_by_one, power
from tulle.audit.table import AuditTable, Row, run_audit

__all__ = [
    "AuditTable",
    "Evidence",
    "Row",
    "find_pairs",
    "lower_bound",
    "one_by_one",
    "power",
    "run_audit",
]
