from __future__ import annotations

import ast
import math
import unicodedata
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tulle
from tulle.core import validate
from tulle.core.errors import InputError
from tulle.core.validate import LONGEST, rational, round_down, round_up, text, visible

finite = st.floats(allow_nan=False, allow_infinity=False)


def test_a_float_is_the_decimal_that_it_prints() -> None:
    assert rational(0.1) == Fraction(1, 10)
    assert sum(rational(0.1) for _ in range(10)) == 1
    assert rational(1e-6) == Fraction(1, 10**6)
    assert rational(np.float64(0.3)) == Fraction(3, 10)
    assert rational(np.int64(3)) == 3
    assert rational(Decimal("0.25")) == Fraction(1, 4)
    assert rational("1/3") == Fraction(1, 3)
    assert rational(" 2.5 ") == Fraction(5, 2)


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "inf",
        "one",
        "1/0",
        "",
        True,
        None,
        [1],
        Decimal("NaN"),
        np.True_,
        np.array([True]),
    ],
)
def test_what_is_not_a_finite_number_is_refused(bad: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        rational(bad)  # type: ignore[arg-type]


def test_exponents_of_absurd_size_are_refused() -> None:
    with pytest.raises(ValueError, match="out of range"):
        rational("1e999999999")


@given(st.fractions())
def test_text_reads_back_exactly(value: Fraction) -> None:
    assert rational(text(value)) == value


@given(finite)
def test_floats_read_back_to_the_same_float(value: float) -> None:
    assert float(rational(value)) == value


@given(st.fractions())
def test_rounding_is_outward_and_tight(value: Fraction) -> None:
    low, high = round_down(value), round_up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert low == high or math.nextafter(low, math.inf) == high


def test_rounding_beyond_the_floats() -> None:
    huge = Fraction(10) ** 400
    assert round_up(huge) == math.inf
    assert Fraction(round_down(huge)) <= huge
    assert round_down(-huge) == -math.inf
    assert round_up(Fraction(1, 10**400)) > 0


CHECKS = {"whole", "number", "positive", "non_negative", "probability", "delta", "epsilon"}


def only_looked_at(source: str) -> list[int]:
    """Return the lines on which a number is checked, and what the check returns is not kept."""
    tree = ast.parse(source)
    inside = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CHECKS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "validate"
        and isinstance(inside[node], ast.Expr | ast.Compare)
        and not isinstance(node.keywords[0].value, ast.Call)
    ]


def test_what_was_checked_is_what_is_used() -> None:
    """The check returns Python's number; what was given may be one of numpy's, which runs over."""
    source = Path(tulle.__file__).parent
    wrong = {
        f"{file.relative_to(source)}:{line}"
        for file in source.rglob("*.py")
        if "cli" not in file.parts  # what is typed is text
        for line in only_looked_at(file.read_text(encoding="utf-8"))
    }
    assert wrong == set()
    assert only_looked_at("validate.whole(bits=bits, at_least=0)") == [1]
    assert only_looked_at("if validate.whole(bits=bits, at_least=0) > 16: pass") == [1]
    assert only_looked_at("bits = validate.whole(bits=bits, at_least=0)") == []


def test_what_was_given_is_not_written_out_at_length() -> None:
    given: list[Any] = ["9" * 5000, "1/" + "9" * 5000, -(10**5000), 10**5000, [0] * 5000]
    for value in given:
        for check in (validate.epsilon, validate.delta, validate.probability, validate.whole):
            limits = {"at_least": 0} if check is validate.whole else {}
            with pytest.raises(InputError) as caught:
                check(amount=value, **limits)
            assert len(str(caught.value)) < 3 * LONGEST


def test_a_price_of_unreasonable_length_is_refused() -> None:
    long = Fraction(10**30000 + 1, 10**30000)
    with pytest.raises(InputError, match="binary digits"):
        validate.epsilon(epsilon=long)
    assert validate.positive(at_most=None, scale=long) == long


def test_text_commands_no_terminal_and_letters_stay_as_they_are() -> None:
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    for letter in map(chr, range(0x110000)):
        commands = unicodedata.category(letter) in ("Cc", "Zl", "Zp") and letter not in "\t\n"
        commands |= unicodedata.bidirectional(letter) in turning
        assert (visible(letter) != letter) == commands, hex(ord(letter))
        assert not commands or visible(letter).isprintable()
