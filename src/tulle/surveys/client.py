"""The client side: what runs where the answer is known. Plain Python, one random primitive.

To port it: read the form's JSON, and for each attribute call ``sample`` of its design. All that
is needed besides whole numbers is a secure source of integers uniform below a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tulle.core.errors import InputError, forgetful
from tulle.core.public import public
from tulle.core.source import Source
from tulle.noise import uniform_below
from tulle.surveys.account import ClientAccount, Question
from tulle.surveys.designs import Report
from tulle.surveys.form import Form


@public()
@forgetful
def respond(
    form: Form,
    answers: Mapping[str, Any],
    *,
    account: ClientAccount,
    wave: str = "",
    source: Source | None = None,
) -> dict[str, Report]:
    """Return what one client sends: a perturbed report for each attribute, and nothing else.

    The account books the price first and keeps the reports. Asked the same question again, it
    sends the stored report at no cost, **whatever the answer is now**: a report that changed
    with the answer would show that it changed. A new ``wave`` is a new question, and is paid.

    Guarantee:
        Pure ``form.epsilon`` per client for each wave, by the designs; a repeated report is a
        copy. The guarantee is the client's own: nobody else has to be trusted.

    Raises:
        InputError: when an attribute is missing or unknown, or an answer is none of its
            categories. The answer is not in the message.
        BudgetError: when the account does not hold enough; nothing is drawn.

    Example:
        >>> from tulle.surveys import Survey
        >>> form = Survey({"smokes": ["no", "yes"]}).form(epsilon=1)
        >>> mine = ClientAccount(epsilon=2, unit="client")
        >>> first = respond(form, {"smokes": "yes"}, account=mine)
        >>> respond(form, {"smokes": "yes"}, account=mine) == first
        True
        >>> mine.spent
        Fraction(1, 1)
    """
    numbers = _numbers(form, answers)

    def draw(bound: int) -> int:
        return uniform_below(bound, source=source)

    questions = [
        Question(
            f"{form.question_key(name)}:{wave}",
            design.epsilon,
            # Bound now: the loop's names will have moved on when the account calls it.
            lambda design=design, number=number: design.sample(number, draw),  # type: ignore[misc]
        )
        for name, design, number in zip(form.survey.names, form.designs, numbers, strict=True)
    ]
    stored = account.answer("client", questions)
    named = zip(form.survey.names, form.designs, stored, strict=True)
    return {name: design.check_report(report) for name, design, report in named}


def _numbers(form: Form, answers: Mapping[str, Any]) -> list[int]:
    """Return the answers as numbers of categories; all are checked before anything is drawn."""
    names = form.survey.names
    unknown = [repr(name) for name in answers if name not in names]
    if unknown:
        raise InputError(f"The survey does not ask for {', '.join(unknown)}.")
    missing = [repr(name) for name in names if name not in answers]
    if missing:
        raise InputError(
            f"There is no answer for {', '.join(missing)}. To leave something out would tell "
            "something: give the attribute a category such as 'no answer'."
        )
    return [attribute.number(answers[attribute.name]) for attribute in form.survey]
