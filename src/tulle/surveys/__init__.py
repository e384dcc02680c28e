"""Surveys in the local model: answers are perturbed before they leave the person.

A room like the others, except that it holds no sealed data: what reaches the collector is already
private. The client side (:mod:`tulle.surveys.client`, ``account``, ``links_client``) and what it
needs (``data``, ``form``, ``designs``, ``laplace``, ``large``, ``exact``) are plain Python; the
collector side uses arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tulle.core.lazy import lazy

if TYPE_CHECKING:
    from tulle.surveys.account import ClientAccount
    from tulle.surveys.bulk import Reports, perturb
    from tulle.surveys.client import respond
    from tulle.surveys.collection import Collection
    from tulle.surveys.data import Survey
    from tulle.surveys.designs import Design, DesignMatrix, RandomizedResponse
    from tulle.surveys.form import Form
    from tulle.surveys.individual import Reconstruction, reconstruct
    from tulle.surveys.laplace import laplace_and_round
    from tulle.surveys.large import LocalHashing, UnaryEncoding
    from tulle.surveys.link_reports import LinkReports, perturb_links
    from tulle.surveys.links_client import LinkForm, report_links
    from tulle.surveys.planner import DesignPlan, plan_design

_HOMES = {
    "account": ("ClientAccount",),
    "client": ("respond",),
    "collection": ("Collection",),
    "data": ("Survey",),
    "designs": ("Design", "DesignMatrix", "RandomizedResponse"),
    "form": ("Form",),
    "individual": ("Reconstruction", "reconstruct"),
    "laplace": ("laplace_and_round",),
    "large": ("LocalHashing", "UnaryEncoding"),
    "link_reports": ("LinkReports", "perturb_links"),
    "links_client": ("LinkForm", "report_links"),
    "bulk": ("Reports", "perturb"),
    "planner": ("DesignPlan", "plan_design"),
}

__all__ = [
    "ClientAccount",
    "Collection",
    "Design",
    "DesignMatrix",
    "DesignPlan",
    "Form",
    "LinkForm",
    "LinkReports",
    "LocalHashing",
    "RandomizedResponse",
    "Reconstruction",
    "Reports",
    "Survey",
    "UnaryEncoding",
    "laplace_and_round",
    "perturb",
    "perturb_links",
    "plan_design",
    "reconstruct",
    "report_links",
    "respond",
]

__getattr__, __dir__ = lazy(__name__, _HOMES)
