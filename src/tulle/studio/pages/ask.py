"""Asking: choose a question, see its price and error, pay, see the answer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from tulle.core.errors import InputError
from tulle.studio import words
from tulle.studio.figures import curve_figure, heat_figure
from tulle.studio.pages.opening import opening_page
from tulle.studio.responses import asked_from, go, page, page_before, state_of, tell
from tulle.studio.state import StudioState
from tulle.studio.study import Study

router = APIRouter()

_CURVE = ("0.01", "0.03", "0.1", "0.3", "1", "3", "10")
"""The prices at which errors are predicted for a curve."""


def study_page(request: Request, study: Study, template: str, **context: Any) -> Response:
    """Render a page of an open study, with its budget, its work and its basket."""
    state = state_of(request)
    assert study.account is not None
    account = state.ledger.account(study.account)
    left = state.ledger.remaining(study.account)
    last = state.jobs.get(study.last or "")
    job = None if last is None else last.now()
    newest = job.result if job is not None and job.state == "done" and job.verb == "ask" else None
    return page(
        request,
        template,
        study=study,
        total=account.terms,
        left=left,
        job=job,
        newest=newest,
        unit_words=words.UNITS[study.kind, study.unit],
        releases=study.releases(),
        **context,
    )


@router.get("/study/{identifier}")
def study(request: Request, identifier: str) -> Response:
    """Show a study: the opening form while it is a draft, then its questions."""
    found = state_of(request).study(identifier)
    if found.account is None:
        return opening_page(request, found)
    if found.kind == "database":
        return go(f"/study/{identifier}/sql")
    if found.kind in ("matrix", "contributions"):
        return go(f"/study/{identifier}/matrix")
    cards = [c for c, able in zip(words.CARDS["graph"], found.cards, strict=True) if able]
    return study_page(request, found, "ask.html", cards=cards)


@router.get("/study/{identifier}/synthetic")
def synthetic(request: Request, identifier: str) -> Response:
    """Offer the models of synthetic graphs."""
    found = opened(state_of(request), identifier, "graph")
    # Per edge the models keep far more than counts do.
    offered = {m: w for m, w in words.MODELS.items() if m != "per_node" or found.unit == "node"}
    asked = [{"kind": "graph", "model": model} for model in offered]
    able = state_of(request).public_worker.call(
        "supported", kind="graph", unit=found.unit, questions=asked
    )
    models = {m: w for (m, w), a in zip(offered.items(), able, strict=True) if a}
    return study_page(request, found, "synthetic.html", models=models)


@router.get("/study/{identifier}/matrix")
def matrix(request: Request, identifier: str) -> Response:
    """Offer the release of a whole matrix."""
    found = opened(state_of(request), identifier, "matrix", "contributions")
    return study_page(request, found, "matrix.html")


@router.get("/study/{identifier}/heat.json")
def heat(request: Request, identifier: str) -> Response:
    """Return the true matrix to draw it inside."""
    found = opened(state_of(request), identifier).worker.call("heat")
    return tell(heat_figure(found["values"], found["names"]))


@router.get("/study/{identifier}/plan.json")
def plan(
    request: Request,
    identifier: str,
    asked: str,
    epsilon: str,
    delta: str = "0",
    mechanism: str | None = None,
) -> Response:
    """Return what a question would cost and how wrong its answer would be."""
    state = state_of(request)
    found = opened(state, identifier)
    made = state.public_worker.call(
        "plan",
        **_public(found, asked),
        epsilon=epsilon,
        delta=delta.strip() or "0",
        mechanism=mechanism or None,
    )
    price = made["guarantee"]
    left = state.ledger.remaining(found.account or "")
    numbers = float(_number(price["epsilon"])), float(_number(price["delta"]))
    return tell(
        {
            **made,
            "meaning": words.meaning(numbers[0], found.unit),
            "affordable": numbers[0] <= float(left.epsilon) and numbers[1] <= float(left.delta),
            "left_after": max(float(left.epsilon) - numbers[0], 0.0),
        }
    )


@router.get("/study/{identifier}/curve.json")
def curve(request: Request, identifier: str, asked: str, delta: str = "0") -> Response:
    """Return the predicted error over a range of prices, as a figure."""
    state = state_of(request)
    found = opened(state, identifier)
    lines = state.public_worker.call(
        "curve", **_public(found, asked), epsilons=_CURVE, delta=delta.strip() or "0"
    )
    return tell(curve_figure(lines))


@router.post("/study/{identifier}/ask")
def ask(
    request: Request,
    identifier: str,
    asked: Annotated[str, Form()],
    epsilon: Annotated[str, Form()] = "",
    delta: Annotated[str, Form()] = "",
    mechanism: Annotated[str, Form()] = "",
    again: Annotated[bool, Form()] = False,
) -> Response:
    """Start drawing an answer; the page then follows it."""
    state = state_of(request)
    found = opened(state, identifier)
    question = asked_from(asked)
    if not epsilon.strip():
        raise InputError("Say what the answer may cost (epsilon): nothing is assumed.")
    title = question.get("text") or question.get("model") or "the matrix"
    if "partition" in question:
        title += f" by {question['partition']}"
    state.track(
        found.ask(
            found.spell_out(question),
            epsilon.strip(),
            delta.strip() or "0",
            title=title,
            mechanism=mechanism or None,
            again=again,
        )
    )
    return go(page_before(request) or f"/study/{identifier}")


@router.post("/study/{identifier}/close")
def close(request: Request, identifier: str) -> Response:
    """Take a study out of the studio."""
    state = state_of(request)
    state.close_study(state.study(identifier))
    return go("/data")


def opened(state: StudioState, identifier: str, *kinds: str) -> Study:
    """Return a study whose account is open, of any of these kinds of data where some are named.

    Raises:
        InputError: when it is still a draft, or of another kind.
    """
    found = state.study(identifier)
    if found.account is None:
        raise InputError("Open the study first: say who is protected and for how much.")
    if kinds and found.kind not in kinds:
        raise InputError("This page is for another kind of data.")
    return found


def _public(study: Study, asked: str) -> dict[str, Any]:
    return {
        "asked": study.spell_out(asked_from(asked)),
        "kind": study.kind,
        "facts": dict(study.facts),
        "assumptions": list(study.assumptions),
        "unit": study.unit,
    }


def _number(text: Any) -> float:
    from fractions import Fraction

    return float(Fraction(str(text if text is not None else 0)))
