from __future__ import annotations

import numba

import tulle
from tulle.core.compiled import COMPILING
from tulle.core.progress import Progress, report, watching
from tulle.graphs.generators import social_network


def test_watchers_hear_of_every_stage_and_of_bounds_that_close_in() -> None:
    told: list[Progress] = []
    graph, recursive = social_network(300, seed=1), {"mechanism": "recursive"}
    with watching(told.append):
        tulle.release(graph, tulle.triangles(), unit="node", epsilon=1.0, **recursive, reach=0.5)
        tulle.release(graph, tulle.stars(2), unit="node", epsilon=1.0, **recursive, reach=0.1)
    steps = {progress.step for progress in told} - {COMPILING}
    assert steps == {"choosing a threshold", "truncating"}
    for progress in told:
        assert progress.lower <= progress.upper * (1 + 1e-9)
    last = [progress for progress in told if progress.step == "truncating"][-1]
    assert last.gap <= last.wanted
    assert "certified to" in str(last)


def test_nobody_hears_outside_the_block_and_blocks_nest() -> None:
    outer: list[Progress] = []
    inner: list[Progress] = []
    report("before", 0.0, 1.0, 0.1)
    with watching(outer.append):
        with watching(inner.append):
            report("inside", 0.0, 1.0, 0.1)
        report("after", 0.0, 1.0, 0.1)
    report("done", 0.0, 1.0, 0.1)
    assert [progress.step for progress in inner] == ["inside"]
    assert [progress.step for progress in outer] == ["after"]


def test_a_progress_does_not_show_its_numbers_by_accident() -> None:
    progress = Progress("truncating", 12345.0, 23456.0, 1.0)
    assert "12345" not in repr(progress)
    assert "23456" not in repr(progress)
    assert str(Progress("truncating", 0.0, float("inf"), 1.0)) == "truncating"


def test_compiling_a_kernel_is_told_once() -> None:
    @numba.njit
    def double(number: int) -> int:
        return 2 * number

    told: list[Progress] = []
    with tulle.watching(told.append):
        assert double(2) == 4
        first = len(told)
        double(3)
    assert {str(progress) for progress in told} == {COMPILING}
    assert len(told) == first
