"""A survey: its questions and their public categories. It holds no answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tulle.core import registry, validate
from tulle.core.errors import InputError, raise_alone
from tulle.core.public import public
from tulle.core.validate import Number, counted

MOST_CATEGORIES = 2**40
"""Of one attribute; more are not told apart by any design."""

if TYPE_CHECKING:
    from tulle.surveys.designs import Design
    from tulle.surveys.form import Form

Category = str | int


@dataclass(frozen=True)
class Attribute:
    """One question: its name and what may be answered, in order."""

    name: str
    categories: tuple[Category, ...] | range

    @property
    def size(self) -> int:
        """The number of categories."""
        return len(self.categories)

    def number(self, answer: Any) -> int:
        """Return the place of an answer among the categories.

        Raises:
            InputError: when it is none of them. The message names the attribute only: an answer
                must not reach a log.
        """
        known = isinstance(answer, str | int) and not isinstance(answer, bool)
        if not known or answer not in self._places:
            raise InputError(
                f"The answer to {self.name!r} is not one of its "
                f"{counted(self.size, 'category', 'categories')}. "
                "Look them up with survey.categories(name)."
            )
        return (
            self._places.index(answer)
            if isinstance(self._places, range)
            else (self._places[answer])
        )

    @property
    def _places(self) -> Any:
        if isinstance(self.categories, range):
            return self.categories
        found = self.__dict__.get("_index")
        if found is None:
            found = {category: place for place, category in enumerate(self.categories)}
            object.__setattr__(self, "_index", found)
        return found


@public("Hold data")
class Survey:
    """Questions with finitely many possible answers, known to everyone.

    ``attributes`` maps each name to its categories: a list of texts or whole numbers, or a
    number k for the categories 0 to k - 1. The unit of protection is the ``client``: everything
    that one person reports.

    Raises:
        InputError: when there is no attribute, one has fewer than two categories, or a category
            twice.

    Example:
        >>> survey = Survey({"smokes": ["no", "yes"], "district": 40}, name="health 2024")
        >>> survey
        Survey('health 2024': smokes (2), district (40))
        >>> survey.form(epsilon=1.0).epsilon
        Fraction(1, 1)
    """

    def __init__(
        self, attributes: Mapping[str, Sequence[Category] | int], *, name: str = "survey"
    ) -> None:
        if not isinstance(attributes, Mapping) or not attributes:
            raise InputError("A survey maps the name of at least one attribute to its categories.")
        if not isinstance(name, str):
            raise InputError("name must be a text.")
        self.name = name
        self._attributes = {key: _attribute(key, value) for key, value in attributes.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes, in order."""
        return tuple(self._attributes)

    def __getitem__(self, name: str) -> Attribute:
        try:
            return self._attributes[name]
        except (KeyError, TypeError):
            known = ", ".join(self.names)
            raise_alone(InputError(f"The survey has no attribute {name!r}. It has: {known}."))

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self._attributes.values())

    def categories(self, name: str) -> tuple[Category, ...]:
        """Return what may be answered to one question."""
        return tuple(self[name].categories)

    def form(
        self,
        *,
        epsilon: Number | Mapping[str, Number] | None = None,
        designs: Mapping[str, str | Design] | None = None,
    ) -> Form:
        """Return the form that clients fill in: a design for every attribute.

        ``epsilon`` is the total for one client, shared equally, or a number for each attribute.
        ``designs`` names designs ("randomized response", "unary encoding",
        "local hashing") or gives them; a design that is given brings its own epsilon. Without
        it the design of least predicted variance is taken.

        *Guarantee.* The sum of the attributes' epsilons, pure, per client.

        Raises:
            InputError: when an epsilon is missing or not above zero, or a name is unknown.
        """
        made: Form = registry.find("data", "survey")["form"](self, epsilon, designs or {})
        return made

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able form that :meth:`from_json` reads."""
        return {
            "name": self.name,
            "attributes": [
                {
                    "name": attribute.name,
                    "categories": len(attribute.categories)
                    if isinstance(attribute.categories, range)
                    else list(attribute.categories),
                }
                for attribute in self
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Survey:
        """Read what :meth:`to_json` wrote."""
        try:
            attributes = {item["name"]: item["categories"] for item in data["attributes"]}
            return cls(attributes, name=data["name"])
        except (KeyError, TypeError, AttributeError) as error:
            raise_alone(InputError(f"This is not a survey written by tulle ({error!r})."))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.name, self.names))

    def __repr__(self) -> str:
        listed = ", ".join(f"{attribute.name} ({attribute.size})" for attribute in self)
        return f"Survey({self.name!r}: {listed})"


def _attribute(name: Any, categories: Any) -> Attribute:
    if not isinstance(name, str) or not name:
        raise InputError(f"An attribute's name is a text; got {name!r}.")
    if hasattr(categories, "__index__") and not isinstance(categories, bool):
        size = validate.whole(categories=categories, at_least=2, at_most=MOST_CATEGORIES)
        return Attribute(name, range(size))
    if isinstance(categories, str) or not isinstance(categories, Sequence):
        raise InputError(f"The categories of {name!r} are a list, or how many there are.")
    if any(isinstance(c, bool) or not isinstance(c, str | int) for c in categories):
        raise InputError(f"The categories of {name!r} are texts or whole numbers.")
    if len(categories) < 2:
        raise InputError(f"{name!r} needs at least two categories; got {len(categories)}.")
    if len(set(categories)) != len(categories):
        raise InputError(f"{name!r} has a category twice.")
    if isinstance(categories, range) and categories == range(len(categories)):
        return Attribute(name, categories)
    return Attribute(name, tuple(categories))
