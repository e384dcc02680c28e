"""A release draws itself: one picture that stands alone, whatever its form."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.answer_forms import cases

import tulle
from tulle.graphs.generators import social_network
from tulle.ledger.answer import draw, plan_for
from tulle.noise import SeededSource

CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_every_form_is_a_picture_or_says_why_not(case: tuple, tmp_path: Path) -> None:
    _, data, query, terms = case
    plan = plan_for(data, query, epsilon=1.0, **terms)
    release = draw(plan, data, SeededSource(1), debit=None)
    value = release.value
    number = isinstance(value, int | float | np.number)
    listed = isinstance(value, np.ndarray) and value.ndim <= 2
    if not (number or listed or hasattr(value, "edges")):
        with pytest.raises(tulle.TulleError, match=r"release\.table\(\)"):
            release.plot()
        return
    drawn = release.plot(tmp_path / "answer.svg")
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("aria-label")
    assert drawn._repr_svg_() == str(drawn)
    assert (tmp_path / "answer.svg").read_text().strip() == drawn


def test_a_degree_distribution_ends_where_its_mass_does() -> None:
    graph = social_network(1200, mean_degree=12, seed=1)
    release = tulle.release(graph, tulle.degree_distribution(), unit="edge", epsilon=1.0)
    root = ElementTree.fromstring(release.plot())
    numbers = [
        float(text.text.replace(",", ""))
        for text in root.iter("{http://www.w3.org/2000/svg}text")
        if text.text and text.text.replace(",", "").replace(".", "").isdigit()
    ]
    assert len(release.value) == 1200
    across = [number for number in numbers if number < 1200]
    assert across
    assert 1199.0 not in numbers
    words = " ".join(text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "degree" in words
