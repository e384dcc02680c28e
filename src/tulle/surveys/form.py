"""What clients are asked to fill in: a survey with a design for every attribute. Public."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tulle.core import registry
from tulle.core.errors import InputError, raise_alone
from tulle.core.guarantee import Guarantee
from tulle.core.public import public
from tulle.core.validate import Number, counted, rational
from tulle.surveys.data import Survey
from tulle.surveys.designs import Design, DesignMatrix, RandomizedResponse
from tulle.surveys.exact import checked_epsilon
from tulle.surveys.large import LocalHashing, UnaryEncoding
from tulle.surveys.planner import describe, design_named, plan_design

FORMAT = 1


@public()
@dataclass(frozen=True)
class Form:
    """A survey with a design for each attribute; the collector sends it to the clients.

    Guarantee:
        Each attribute is perturbed on its own; the joint probability of a client's reports is
        the product, so the ratios multiply and the epsilons add.

    Example:
        >>> form = Survey({"smokes": ["no", "yes"]}).form(epsilon=1)
        >>> Form.from_json(form.to_json()) == form
        True
        >>> print(form.guarantee())  # doctest: +ELLIPSIS
        epsilon = 1, pure, per client (replace); assuming that each client perturbed ...
    """

    survey: Survey
    designs: tuple[Design, ...]

    def __post_init__(self) -> None:
        if len(self.designs) != len(self.survey.names):
            raise InputError("A form has exactly one design for each attribute.")
        for attribute, design in zip(self.survey, self.designs, strict=True):
            if design.categories != attribute.size:
                raise InputError(
                    f"The design of {attribute.name!r} is for "
                    f"{counted(design.categories, 'category', 'categories')}; the "
                    f"attribute has {attribute.size}."
                )

    def design(self, name: str) -> Design:
        """Return the design of one attribute."""
        self.survey[name]  # refuses unknown names
        return self.designs[self.survey.names.index(name)]

    @property
    def epsilon(self) -> Fraction:
        """What one client spends by filling in the form once."""
        return sum((design.epsilon for design in self.designs), Fraction(0))

    def guarantee(self) -> Guarantee:
        """Return what a client is promised who perturbs with these designs, once."""
        named = zip(self.survey.names, self.designs, strict=True)
        listed = "; ".join(f"{name}: {describe(design)}" for name, design in named)
        return Guarantee.of(
            "client",
            epsilon=self.epsilon,
            assumptions=(
                f"each client perturbed the answers before they left ({listed})",
                "each client reported once, or repeated a stored report",
            ),
        )

    def question_key(self, name: str) -> str:
        """Return a digest of one question: attribute, categories and design.

        Two forms that ask the same in the same way share it, and so the client's stored report.
        """
        attribute = self.survey[name]
        content = {
            "survey": self.survey.name,
            "attribute": name,
            "categories": attribute.size
            if isinstance(attribute.categories, range)
            else list(attribute.categories),
            "design": self.design(name).to_json(),
        }
        canonical = json.dumps(content, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            "format": FORMAT,
            "survey": self.survey.to_json(),
            "designs": [design.to_json() for design in self.designs],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Form:
        """Read a form; every design's guarantee is checked again by whoever reads it.

        Raises:
            InputError: when it is not a form, or a design does not keep its epsilon.
        """
        try:
            if data["format"] != FORMAT:
                raise InputError(f"This form has format {data['format']}; expected {FORMAT}.")
            designs = tuple(design_from_json(item) for item in data["designs"])
            return cls(Survey.from_json(data["survey"]), designs)
        except (KeyError, TypeError, AttributeError) as error:
            raise_alone(InputError(f"This is not a form written by tulle ({error!r})."))

    def __str__(self) -> str:
        named = zip(self.survey.names, self.designs, strict=True)
        return "\n".join(f"{name}: {describe(design)}" for name, design in named)


@registry.register("data", "survey", "form")
def make_form(
    survey: Survey,
    epsilon: Number | Mapping[str, Number] | None,
    designs: Mapping[str, str | Design],
) -> Form:
    """Build a form; see :meth:`Survey.form`."""
    for name in designs:
        survey[name]
    shares = _shares(survey, epsilon, designs)
    chosen: list[Design] = []
    for attribute in survey:
        wanted = designs.get(attribute.name)
        share = shares.get(attribute.name)
        if isinstance(wanted, Design):
            chosen.append(wanted)
        elif share is None:
            raise InputError(
                f"epsilon for {attribute.name!r} must be given: nothing that costs privacy has a "
                "default."
            )
        elif wanted is None:
            chosen.append(plan_design(attribute.size, epsilon=share).chosen)
        else:
            chosen.append(design_named(wanted, attribute.size, share))
    return Form(survey, tuple(chosen))


def _shares(
    survey: Survey,
    epsilon: Number | Mapping[str, Number] | None,
    designs: Mapping[str, str | Design],
) -> dict[str, Fraction]:
    open_names = [n for n in survey.names if not isinstance(designs.get(n), Design)]
    if epsilon is None:
        return {}
    if isinstance(epsilon, Mapping):
        for name in epsilon:
            survey[name]
            if name not in open_names:
                raise InputError(f"The design of {name!r} brings its own epsilon; leave it out.")
        return {name: checked_epsilon(share) for name, share in epsilon.items()}
    given = sum((d.epsilon for d in designs.values() if isinstance(d, Design)), Fraction(0))
    left = checked_epsilon(epsilon) - given
    if left < 0 or (left == 0 and open_names):
        raise InputError("epsilon is the total for one client; the given designs use it up.")
    return {name: left / len(open_names) for name in open_names}


def design_from_json(data: Mapping[str, Any]) -> Design:
    """Read a design; its probabilities are checked against its epsilon again."""
    try:
        kind, epsilon = data["design"], rational(data["epsilon"])
        if kind == DesignMatrix.name:
            columns = tuple(tuple(rational(p) for p in column) for column in data["columns"])
            return DesignMatrix(columns, epsilon, str(data["label"]))
        categories, other = int(data["categories"]), rational(data["other"])
        if kind == RandomizedResponse.name:
            return RandomizedResponse(categories, other, epsilon)
        if kind == UnaryEncoding.name:
            return UnaryEncoding(categories, other, epsilon)
        if kind == LocalHashing.name:
            return LocalHashing(categories, int(data["buckets"]), other, epsilon)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise_alone(InputError(f"This is not a design written by tulle ({error!r})."))
    raise InputError(f"The design {kind!r} is not known to this version of tulle.")
