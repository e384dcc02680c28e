"""What the process without data answers."""

from __future__ import annotations

from tulle.studio.public_worker import PublicWorker
from tulle.studio.questions import build


def test_a_synthetic_network_is_offered_per_node():
    asked = [{"kind": "graph", "model": model} for model in ("auto", "per_node")]
    assert str(build(asked[1])) == "synthetic_per_node()"
    assert PublicWorker().supported("graph", "node", asked) == [False, True]
