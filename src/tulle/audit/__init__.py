"""The house's conscience: every bound, distribution and sampler checked, and the checks checked.

* ``exhaustive``: each inequality that a proof rests on, on all small datasets and neighbours.
* ``exact``: whole output distributions of neighbours against the stated guarantee, and real
  draws against those distributions.
* ``fresh``: noise is new every time and comes from the source asked for.
* ``blackbox``: a lower bound on epsilon from draws alone, with a stated power.
* ``failures``: neighbours fail alike and say nothing in between.
* ``twins``: mechanisms that are wrong on purpose; the same checks must reject them.

``kind`` says what a room must provide to be audited; ``graphs`` does so for graphs.
"""

from tulle.audit.blackbox import Evidence, find_pairs, lower_bound, one_by_one, power
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
