"""The client side of collecting a network: each pair of people is reported by exactly one of them.

If both ends reported the same link, it would be told twice and cost twice. Plain Python.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tulle.core import validate
from tulle.core.errors import InputError, forgetful
from tulle.core.guarantee import Guarantee
from tulle.core.public import public
from tulle.core.source import Source
from tulle.core.validate import Number, text
from tulle.noise import uniform_below
from tulle.surveys.account import ClientAccount, Question
from tulle.surveys.designs import Draw, RandomizedResponse

MOST_NODES = 16_384
"""Every pair is reported, so work and memory grow with the square of the number of people."""


@public()
@dataclass(frozen=True)
class LinkForm:
    """Who reports which pairs, and with what probability a report is flipped. Public.

    Guarantee:
        Pure epsilon per edge. A pair's one report is binary randomized response, so one link
        changes the probability of all reports by a factor exp(epsilon) at most. It is not a
        guarantee for all links of a person together: that is epsilon times the links they differ
        in.

    Raises:
        InputError: when there are fewer than two nodes, or more than 16,384.

    Example:
        >>> form = LinkForm.of(4, epsilon=1)
        >>> [form.partners(client) for client in range(4)]
        [[2], [0, 3], [1], [0, 2]]
    """

    nodes: int
    design: RandomizedResponse

    def __post_init__(self) -> None:
        nodes = validate.whole(nodes=self.nodes, at_least=2)
        object.__setattr__(self, "nodes", nodes)
        if nodes > MOST_NODES:
            raise InputError(f"Links are collected among at most {MOST_NODES} people; got {nodes}.")
        if self.design.categories != 2:
            raise InputError("A link is reported as present or absent: two categories.")

    @classmethod
    def of(cls, nodes: int, *, epsilon: Number) -> LinkForm:
        """Return the form for so many people at this epsilon per link."""
        return cls(
            validate.whole(nodes=nodes, at_least=2), RandomizedResponse.of(2, epsilon=epsilon)
        )

    @property
    def epsilon(self) -> Fraction:
        """What one link costs."""
        return self.design.epsilon

    @property
    def pairs(self) -> int:
        """How many pairs there are, and so reports."""
        return self.nodes * (self.nodes - 1) // 2

    def reporter(self, first: int, second: int) -> int:
        """Return which of two people reports their link: the lower number if the sum is even."""
        low, high = min(first, second), max(first, second)
        return low if (low + high) % 2 == 0 else high

    def partners(self, client: int) -> list[int]:
        """Return the people whose link with this client the client reports: about half of all."""
        below = range((client + 1) % 2, client, 2)
        above = range(client + 2, self.nodes, 2)
        return [*below, *above]

    def guarantee(self) -> Guarantee:
        """Return what one link is promised."""
        return Guarantee.of(
            "edge",
            epsilon=self.epsilon,
            assumptions=(
                "each pair of clients was reported by exactly one of the two, once, by randomized "
                f"response at epsilon {text(self.epsilon)}",
            ),
        )

    def key(self) -> str:
        """Return a digest of the form."""
        content = json.dumps({"nodes": self.nodes, "design": self.design.to_json()}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


@public()
@forgetful
def report_links(
    form: LinkForm,
    client: int,
    friends: Iterable[int],
    *,
    account: ClientAccount,
    wave: str = "",
    source: Source | None = None,
) -> list[int]:
    """Return the people that this client reports a link with: some true, some not.

    Only pairs that fall to this client are reported; friends on other pairs are left out. The
    account is kept per edge: each link of the client is told at most once for its price.

    Guarantee:
        Pure ``form.epsilon`` per edge for each wave, given that every client follows the rule.

    Raises:
        InputError: when the client or a friend is not a number of a node. No friend is named.
        BudgetError: when the account does not hold enough; nothing is drawn.

    Example:
        >>> form = LinkForm.of(4, epsilon=1)
        >>> mine = ClientAccount(epsilon=1, unit="edge")
        >>> set(report_links(form, 1, [0, 2], account=mine)) <= {0, 3}
        True
    """
    client = _node(form, client)
    known = _friends(form, client, friends)

    def draw(bound: int) -> int:
        return uniform_below(bound, source=source)

    question = Question(
        f"links:{form.key()}:{client}:{wave}",
        form.epsilon,
        lambda: sample_links(form, client, known, draw),
    )
    (stored,) = account.answer("edge", [question])
    return [int(partner) for partner in stored]


def sample_links(form: LinkForm, client: int, friends: set[int], draw: Draw) -> list[int]:
    """Draw one client's reports, using nothing but ``draw``."""
    return [
        partner
        for partner in form.partners(client)
        if form.design.sample(int(partner in friends), draw)
    ]


def _node(form: LinkForm, client: Any) -> int:
    number = validate.whole(client=client, at_least=0)
    if number >= form.nodes:
        raise InputError(f"client must be below {form.nodes}; got {number}.")
    return number


def _friends(form: LinkForm, client: int, friends: Iterable[int]) -> set[int]:
    found = set()
    for friend in friends:
        good = hasattr(friend, "__index__") and not isinstance(friend, bool)
        if not good or not 0 <= int(friend) < form.nodes or int(friend) == client:
            raise InputError(
                f"friends are numbers from 0 to {form.nodes - 1} other than the client's own."
            )
        found.add(int(friend))
    return found
