"""What is set up before kernels run, against loops that are obvious."""

from __future__ import annotations

import numpy as np
import pytest

from tulle.graphs.synthesis.auto.degrees import _average
from tulle.graphs.synthesis.generators.realise_joint import lay_out


@pytest.mark.parametrize("seed", range(60))
def test_nodes_with_room_are_listed_by_kind(seed):
    random = np.random.default_rng(seed)
    starts = np.append(0, np.cumsum(random.integers(seed % 2, 5, random.integers(1, 6))))
    room = random.integers(0, 4, starts[-1])
    kinds, state = lay_out(room, starts)
    _, _, free, place, count, offsets, filled, lists, most = state
    for kind in range(len(starts) - 1):
        members = range(starts[kind], starts[kind + 1])
        listed = [node for node in members if room[node] > 0]
        assert [kinds[node] for node in members] == [kind] * len(members)
        assert free[starts[kind] : starts[kind] + count[kind]].tolist() == listed
        assert most[kind] == max((room[node] for node in members), default=0)
        assert [place[node] for node in listed] == list(range(len(listed)))
    assert (place[room == 0] == -1).all()
    assert offsets.tolist() == [int(room[:node].sum()) for node in range(len(room) + 1)]
    assert filled.sum() == 0
    assert len(lists) == room.sum()


def averaged(density, enough):
    """The same as a loop: reach further on both sides until enough is held."""
    count, smooth = len(density), density.copy()
    for place in range(1, count):
        if density[place:].sum() < 0.3:
            break
        reach = 0
        while (
            reach < place // 3
            and place + reach < count
            and density[place - reach : place + reach + 1].sum() < enough
        ):
            reach += 1
        window = density[place - reach : min(count, place + reach + 1)]
        smooth[place] = window.sum() / len(window)
    return smooth * density.sum() / smooth.sum() if smooth.sum() > 0 else smooth


@pytest.mark.parametrize("seed", range(60))
def test_averages_reach_as_far_as_it_takes(seed):
    random = np.random.default_rng(seed)
    # Quarters: sums are exact, so that both ways agree on what is enough.
    density = random.integers(0, 5, random.integers(1, 60)) / 4
    if seed % 3 == 0:
        density = np.sort(density)[::-1].copy()
    enough = random.integers(0, 20) / 4
    assert _average(density, enough) == pytest.approx(averaged(density, enough), abs=1e-12)
