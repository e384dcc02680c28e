"""Numbers set by hand that move a mechanism's answers are in its ``Tuning``, which says why."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "tulle"

BY_NAME = re.compile(r"_?(LARGEST|LONGEST|MOST|ROUNDING|MARGIN|UP|CHUNK|PIECE|UNITS|STEPS?)(_.*)?")
"""Public limits of size, what covers rounding, lattices, pieces of work."""

OTHERS = {
    "genomes/laplace.py FINENESS": "a lattice",
    "graphs/mechanisms/ladder.py _GRID": "a lattice",
    "graphs/mechanisms/smooth.py POWER": "the law of the noise",
    "graphs/mechanisms/smooth.py SLIDE": "computed from the law of the noise",
    "graphs/mechanisms/smooth.py STRETCH": "computed from the law of the noise",
    "graphs/mechanisms/statistic_ladder.py THOUSANDTH": "a logarithm",
    "graphs/mechanisms/statistic_ladder.py _BLOCKS": "how finely an error is computed, upwards",
    "graphs/mechanisms/statistic_ladder.py _IGNORED": "how finely an error is computed, upwards",
    "graphs/spectra/eigenvalues_laplace.py PROOF": "covers rounding",
    "graphs/spectra/power.py LEVELS": "a lattice",
    "graphs/spectra/power.py _LEAST_REACH": "that no row is beyond the limits of floating point",
    "graphs/spectra/power.py _LARGE": "which line of Tuning holds",
    "graphs/synthesis/auto/model.py LADDERS": "which counts have one",
    "graphs/synthesis/models/kronecker.py _GRID": "how finely a minimum is looked for",
    "graphs/synthesis/models/kronecker.py _ZOOMS": "how finely a minimum is looked for",
    "graphs/synthesis/models/topm.py _DIGITS": "how exactly chances are computed",
    "graphs/synthesis/models/topm.py _REACH": "a chance below 10^-17",
    "graphs/synthesis/models/two_five_k.py WORK_PER_EDGE": "a limit of work",
    "graphs/topology/response.py _ONES": "the ones of every byte",
    "matrices/binary/coupled.py _TRIAL_CELLS": "how exactly a prediction is measured",
    "matrices/contributions/found_cells.py LEVEL": "the level of intervals",
    "matrices/contributions/private_partition.py PIECES": "a lattice",
    "models/moments.py TYPICAL_VARIANCE": "what a plan assumes",
    "models/moments.py UNKNOWN": "as good as infinite",
    "models/objective.py _CURVATURE": "a lattice",
    "relations/mechanisms/sparse_vector.py COUNT": "that thresholds reach the largest number",
    "relations/mechanisms/sparse_vector.py _FINE": "that thresholds reach the largest number",
    "relations/mechanisms/sparse_vector.py _LEAP": "that thresholds reach the largest number",
    "relations/truncation/mechanism.py PREDICTED_GAP": "how exactly a prediction is computed",
    "sql/mechanisms/quantile.py ENDS_LEVEL": "the level of intervals",
    "sql/mechanisms/quantile.py POINTS": "how exactly a prediction is computed",
    "sql/mechanisms/quantile.py _FARTHEST": "a limit of size",
    "sql/mechanisms/quantile.py _HEAVIEST": "a limit of size",
    "sql/mechanisms/truncation.py _FEW_LEVELS": "how exactly a prediction is computed",
    "sql/mechanisms/truncation.py _MANY_LEVELS": "how exactly a prediction is computed",
}
"""Numbers in the files of mechanisms that nobody tuned, and what they are."""

NO_BUDGET = {
    "core/validate.py": "the least that an option may set",
    "graphs/synthesis/ladder_counts.py": "shares among which a formula chooses",
    "lp/solver.py": "a share of an allowed gap",
    "planning/budget_split.py": "the least share that a split gives to any part",
}
"""Shares that no mechanism sets by hand."""


def numbers(text: str) -> Iterator[str]:
    """Yield the names of the module's constants that have a number written into them."""
    for node in ast.parse(text).body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        if any(isinstance(part, ast.Name) and part.id == "Tuning" for part in ast.walk(node.value)):
            continue
        if any(
            isinstance(part, ast.Constant) and type(part.value) in (int, float)
            for part in ast.walk(node.value)
        ):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for part in (part for target in targets for part in ast.walk(target)):
                if isinstance(part, ast.Name):
                    yield part.id


def mechanisms() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of every file that defines a mechanism."""
    for path in sorted(SOURCE.rglob("*.py")):
        place, text = path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")
        if re.search(r"Mechanism\):|@registry\.mechanism\(", text) and not re.match(
            "audit/|core/", place
        ):
            yield place, text


def test_numbers_of_mechanisms_are_in_their_tuning():
    found = {
        f"{place} {name}"
        for place, text in mechanisms()
        for name in numbers(text)
        if not BY_NAME.fullmatch(name)
    }
    assert found == set(OTHERS)


def test_shares_of_a_budget_are_in_some_tuning():
    for path in SOURCE.rglob("*.py"):
        for name in numbers(path.read_text(encoding="utf-8")):
            place = path.relative_to(SOURCE).as_posix()
            assert not re.search("SHARES?$", name) or place in NO_BUDGET, (place, name)


def test_a_share_outside_would_be_found():
    text = "from fractions import Fraction\nSHARE = Fraction(1, 2)\n_PARTS = {'a': (1, 2)}\n"
    assert list(numbers(text)) == ["SHARE", "_PARTS"]
    assert not list(numbers("TUNED = Tuning(reach=1.75)\nNAME = 'x'\n"))


def test_every_tuning_says_which_data_chose_it():
    said = re.compile(
        r"[Cc]hosen (by|on|so)|[Ll]ooked at on|[Ff]ound on|[Ss]et by hand, on|record|No data chose"
    )
    count = 0
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name == "Tuning":
                count += 1
                assert said.search(" ".join(ast.unparse(node).split())), path
    assert count > 25
