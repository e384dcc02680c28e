"""Releases as records of the public registry of differential privacy deployments.

The registry's format is described in its repository (opendp/deployments-registry-data, the schema
of deployments). What a ledger knows is filled in: variant, unit, parameters, model, accounting,
mechanisms, date. What it cannot know (who publishes, what for, which region) is said by the
custodian.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tulle.core.errors import InputError
from tulle.core.public import public
from tulle.core.validate import rational, round_up

if TYPE_CHECKING:
    from tulle.core.guarantee import Guarantee
    from tulle.core.release import Release
    from tulle.ledger.account import Account

TYPES = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
VARIANTS = {
    "pure": "Pure DP",
    "approximate": "Approximate DP",
    "concentrated": "Zero-concentrated DP",
}

_UNITS = {
    "edge": ("Edge", "one link between two nodes"),
    "node": ("Node", "one node with all its links"),
    "row": ("Row", "the values of one row"),
    "cell": ("Cell", "one value of the matrix"),
    "participant": ("Participant", "all records of one participant"),
    "client": ("Client", "everything that one client reports"),
}


@public("Plan, pay, release")
@dataclass(frozen=True)
class Deployment:
    """What the registry asks about a publication and no ledger knows.

    Example:
        >>> about = Deployment("Friendships", ["Town school"], "Research on bullying", "Sweden")
        >>> about.data_product_type
        'Summary statistics'
    """

    name: str
    data_curators: list[str]
    intended_use: str
    data_product_region: str
    description: str = ""
    """Said from the questions, when it is left out."""
    data_product_type: str = "Summary statistics"
    data_product_sector: str | None = None
    registry_authors: tuple[str, ...] = ()
    """The curators, when nobody is named."""

    def __post_init__(self) -> None:
        curators = self.data_curators
        if isinstance(curators, str) or not curators or not all(curators):
            raise InputError("data_curators is a list of names, with at least one.")
        for what in ("name", "intended_use", "data_product_region"):
            if not str(getattr(self, what)).strip():
                raise InputError(f"The registry needs {what}; it is empty.")
        _among("data_product_type", self.data_product_type, TYPES)
        if self.data_product_sector is not None:
            _among("data_product_sector", self.data_product_sector, SECTORS)


def _among(what: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise InputError(f"{what} must be one of {', '.join(known)}; got {value!r}.")


def release_record(release: Release, about: Deployment) -> dict[str, Any]:
    """Return the registry's record of one release."""
    return _record([release], release.guarantee, about, composition="One answer; nothing is added.")


def account_record(
    account: Account, releases: Iterable[Release], about: Deployment
) -> dict[str, Any]:
    """Return the registry's record of everything an account has paid for, within its terms."""
    listed = list(releases)
    if not listed:
        raise InputError(f"Account {account.name!r} has no releases yet: there is nothing to tell.")
    how = "Prices are booked before noise is drawn, and add up to at most the parameters stated"
    if account.order is not None:
        how += (
            f"; besides by addition, by a Rényi filter of order {float(account.order):.6g}, valid "
            "for questions and prices chosen in view of earlier answers"
        )
    if account.renewal is not None:
        how += f". The budget renews: {account.words}".removesuffix(".")
    return _record(listed, account.terms, about, composition=f"{how}.")


def _record(
    releases: list[Release], guarantee: Guarantee, about: Deployment, *, composition: str
) -> dict[str, Any]:
    unit = guarantee.unit
    title, meaning = _UNITS[unit.base]
    if unit.period is not None:
        title, meaning = f"{title} and {unit.period}", unit.meaning
    change = "adding or removing" if unit.relation == "add-remove" else "changing"
    days = sorted(release.date for release in releases if release.date)
    if not days:
        raise InputError("The registry needs a date, and these releases have none.")
    asked = "; ".join(dict.fromkeys(release.query for release in releases))
    used = ", ".join(dict.fromkeys(release.mechanism for release in releases))
    version = releases[-1].versions.get("tulle", "of an unknown version")
    assumed = dict.fromkeys(a for release in releases for a in release.guarantee.assumptions)
    local = unit.name == "client"
    basic: dict[str, Any] = {
        "name": about.name,
        "data_curators": list(about.data_curators),
        "intended_use": about.intended_use,
        "data_product_type": about.data_product_type,
        "data_product_region": about.data_product_region,
        "description": about.description or f"Answers to: {asked}.",
        "publication_date": days[0],
    }
    if about.data_product_sector is not None:
        basic["data_product_sector"] = about.data_product_sector
    details = f"Neighbours differ by {change} {meaning}."
    if assumed:
        details += f" Assumed: {'; '.join(assumed)}."
    if not all(release.guarantee.holds for release in releases):
        raise InputError("A release drawn from a seeded source has no guarantee to register.")
    return {
        "url_slug": _slug(about, days[0]),
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": basic,
            "dp_variant": {"variant_name": VARIANTS[guarantee.measure]},
            "privacy_loss": {
                "privacy_unit": title,
                "privacy_unit_details": details,
                "privacy_parameters": _parameters(guarantee),
            },
            "deployment_model": {
                "model_name": "Local" if local else "Central",
                "release_type": "One release" if len(releases) == 1 else "Many releases",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {"composition": composition},
            "implementation": {"mechanisms": f"{used}; implemented by tulle {version}."},
            "administrative": {
                "registry_authors": list(about.registry_authors or about.data_curators)
            },
        },
    }


def _parameters(guarantee: Guarantee) -> dict[str, float]:
    """Return the parameters as floats, rounded up."""
    if guarantee.rho is not None:
        return {"rho": _up(guarantee.rho)}
    assert guarantee.epsilon is not None
    found = {"epsilon": _up(guarantee.epsilon)}
    return found | ({"delta": _up(guarantee.delta)} if guarantee.delta else {})


def _up(value: Fraction) -> float:
    """Return the float that prints as the number, or else the next one above."""
    near = float(value)
    return near if rational(near) >= value else round_up(value)


def _slug(about: Deployment, day: str) -> str:
    words = " ".join((about.name, about.data_curators[0], about.data_product_type, day[:4]))
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def to_yaml(record: Mapping[str, Any]) -> str:
    """Write a record as YAML: texts in double quotes, so that nothing is read as something else.

    Example:
        >>> print(to_yaml({"tier": 2, "basic": {"name": "a: b", "curators": ["c"]}}), end="")
        tier: 2
        basic:
          name: "a: b"
          curators:
            - "c"
    """
    return "".join(f"{line}\n" for line in _lines(record, 0))


def _lines(value: Any, depth: int) -> Iterable[str]:
    pad = "  " * depth
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, Mapping | list):
                yield f"{pad}{key}:"
                yield from _lines(inner, depth + 1)
            else:
                yield f"{pad}{key}: {_scalar(inner)}"
    else:
        for inner in value:
            yield f"{pad}- {_scalar(inner)}"


def _scalar(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "." not in written:
        # YAML 1.1 reads 1e-06 as a text.
        return written.replace("e", ".0e")
    return written
