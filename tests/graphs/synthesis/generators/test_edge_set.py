"""A set of edges for compiled code: open addressing, with deletion that leaves no gaps."""

from __future__ import annotations

from tulle.graphs.synthesis.generators.edge_set import draw_below


def test_a_number_below_a_count_is_below_it():
    class Largest:
        def random(self):
            return 1 - 2.0**-53

    for count in (1, 2, 3, 5, 7, 10, 2**20 + 1, 2**31 - 1, 3 * 2**40 + 1, 2**53 - 1):
        assert draw_below(count, Largest()) == count - 1
