"""Records for the public registry of deployments have its form, and say what the ledger says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import tulle
from tulle.ledger.deployments import (
    SECTORS,
    TYPES,
    VARIANTS,
    Deployment,
    account_record,
    release_record,
    to_yaml,
)
from tulle.noise import SeededSource

ABOUT = Deployment("Friendships: a study", ["Town school"], "Research", "Sweden")

# The registry's form, as its repository describes it: allowed fields; a tuple lists the allowed
# values, a set after a field's name says which fields must be there.
BASIC = {
    "name": str,
    "data_curators": list,
    "intended_use": str,
    "data_product_type": TYPES,
    "data_product_region": str,
    "description": str,
    "publication_date": date,
    "data_product_sector": SECTORS,
}
FORM: dict[str, Any] = {
    "url_slug": str,
    "status": ("Draft",),
    "tier": (1, 2, 3),
    "deployment": {
        "basic": BASIC,
        "dp_variant": {"variant_name": (*VARIANTS.values(), "Renyi DP", "Custom")},
        "privacy_loss": {
            "privacy_unit": str,
            "privacy_unit_details": str,
            "privacy_parameters": {"epsilon": float, "delta": float, "rho": float},
        },
        "deployment_model": {
            "model_name": ("Local", "Central", "Shuffle", "Federated"),
            "release_type": ("One release", "Many releases"),
            "data_source_type": ("Static", "Dynamic"),
            "access_type": ("Interactive", "Non-interactive"),
        },
        "accounting": {"post_processing": str, "composition": str},
        "implementation": {"mechanisms": str, "justification": str},
        "administrative": {"registry_authors": list, "sources": str, "notes": str},
    },
}
NEEDED = {
    "": {"url_slug", "status", "tier", "deployment"},
    "deployment": {"basic"},
    "basic": set(BASIC) - {"data_product_sector"},
    "administrative": {"registry_authors"},
}


def faults(found: Any, form: Any, where: str = "") -> list[str]:
    """Return what is not of the registry's form."""
    if isinstance(form, Mapping):
        missing = NEEDED.get(where, set()) - set(found)
        strange = set(found) - set(form)
        inner = [f for key in set(found) & set(form) for f in faults(found[key], form[key], key)]
        return [f"{where}: {name}" for name in sorted(missing | strange)] + inner
    if isinstance(form, tuple):
        return [] if found in form else [where]
    if form is date:
        return [] if date.fromisoformat(found).isoformat() == found else [where]
    if form is list:
        return [] if found and all(isinstance(item, str) for item in found) else [where]
    return [] if isinstance(found, form) and found != "" else [where]


@pytest.fixture
def ledger(tmp_path: Path) -> tulle.Ledger:
    friends = tulle.Graph.from_edges([(0, 1), (1, 2), (2, 0)], nodes=6)
    ledger = tulle.Ledger(tmp_path / "study.ledger")
    study = ledger.open("friends", friends, unit="edge", epsilon=1, delta=1e-6)
    study.ask(tulle.edges(), epsilon=0.1)
    study.ask(tulle.triangles(), epsilon=0.1, delta=1e-7, mechanism="smooth")
    ledger.open("rho", friends, unit="edge", rho=0.5).ask(tulle.edges(), epsilon=0.1)
    return ledger


def test_records_have_the_form_of_the_registry(ledger: tulle.Ledger) -> None:
    for account in ledger.accounts():
        kept = ledger.releases(account.name)
        records = [account_record(account, kept, ABOUT)]
        records += [release_record(item, ABOUT) for item in kept]
        for record in records:
            assert faults(record, FORM) == []
    assert "tier" in faults({**records[0], "tier": 4}, FORM)
    assert ": surprise" in faults({**records[0], "surprise": 1}, FORM)


def test_a_record_is_read_back_from_yaml(ledger: tulle.Ledger) -> None:
    yaml = pytest.importorskip("yaml")
    for account in ledger.accounts():
        record = account_record(account, ledger.releases(account.name), ABOUT)
        assert yaml.safe_load(to_yaml(record)) == record


def test_a_record_says_what_the_ledger_says(ledger: tulle.Ledger) -> None:
    whole = account_record(ledger.account("friends"), ledger.releases("friends"), ABOUT)
    loss = whole["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert loss["privacy_unit"] == "Edge"
    assert "one link" in loss["privacy_unit_details"]
    assert whole["deployment"]["deployment_model"]["release_type"] == "Many releases"
    assert "Rényi filter" in whole["deployment"]["accounting"]["composition"]
    first, second = (release_record(item, ABOUT) for item in ledger.releases("friends"))
    assert first["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    assert second["deployment"]["privacy_loss"]["privacy_parameters"]["delta"] == 1e-7
    assert "smooth" in second["deployment"]["implementation"]["mechanisms"]
    rho = account_record(ledger.account("rho"), ledger.releases("rho"), ABOUT)
    assert rho["deployment"]["privacy_loss"]["privacy_parameters"] == {"rho": 0.5}


def test_what_cannot_be_registered_is_refused(ledger: tulle.Ledger) -> None:
    friends = tulle.Graph.from_edges([(0, 1)], nodes=3)
    seeded = tulle.release(friends, tulle.edges(), unit="edge", epsilon=1, source=SeededSource(1))
    with pytest.raises(tulle.InputError, match="no guarantee to register"):
        release_record(seeded, ABOUT)
    with pytest.raises(tulle.InputError, match="needs a date"):
        release_record(replace(ledger.releases("rho")[0], date=None), ABOUT)
    with pytest.raises(tulle.InputError, match="nothing to tell"):
        account_record(ledger.account("rho"), [], ABOUT)
    with pytest.raises(tulle.InputError, match="must be one of"):
        replace(ABOUT, data_product_type="Numbers")
    with pytest.raises(tulle.InputError, match="it is empty"):
        replace(ABOUT, intended_use=" ")
    with pytest.raises(tulle.InputError, match="at least one"):
        replace(ABOUT, data_curators=[])
