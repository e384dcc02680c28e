"""MatrixMarket files: what would end the process is refused before the parser sees it."""

from __future__ import annotations

import pytest

import tulle
from tulle.core.matrix_market import read_matrix_market

MARKET = b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2"


def test_whole_files_are_read_however_their_lines_end():
    for end in (b"", b"\n", b"\r\n", b"\r", b" \n\n"):
        found = read_matrix_market(MARKET + end, "a.mtx").toarray()
        assert found.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_lines_that_end_a_parser_never_reach_it():
    """Each of these ends the process in the parser of SciPy (1.16): nothing is left to catch."""
    for last in (b"3 2X", b"3 2\xbc", b"3 2" + b"a" * 60, b"3 2\x85"):
        with pytest.raises(tulle.InputError, match="line 4: not valid MatrixMarket"):
            read_matrix_market(MARKET.rpartition(b"\n")[0] + b"\n" + last, "a.mtx")


def test_what_does_not_fit_is_refused():
    for body in (b"3 3 2\n2 1\n", b"3 3 1\n9 1\n", b"3 3 1\n0 1\n", b"3 3 99999999999999\n2 1\n"):
        with pytest.raises(tulle.InputError, match="not valid MatrixMarket"):
            read_matrix_market(MARKET.split(b"\n")[0] + b"\n" + body, "a.mtx")
    with pytest.raises(tulle.InputError, match="not a MatrixMarket header"):
        read_matrix_market(b"1 2\n", "a.mtx")
