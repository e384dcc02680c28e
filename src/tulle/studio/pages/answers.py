"""Answers: what is outside, as pages and files; and beside them, inside, the truth."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from tulle.core.errors import InputError
from tulle.studio.figures import belief_figure, compare_figure, network_figure, value_figure
from tulle.studio.jobs import Job
from tulle.studio.pages.ask import opened, study_page
from tulle.studio.responses import embedded, state_of, tell
from tulle.studio.study import Study

router = APIRouter()


@router.get("/study/{identifier}/answers/{debit}")
def answer(request: Request, identifier: str, debit: str) -> Response:
    """Show one release in full."""
    state = state_of(request)
    study = opened(state, identifier)
    release = study.release(debit)
    shown = state.public_worker.call("show", release=release)
    asked = _asked(state_of(request), study, debit)
    return study_page(
        request,
        study,
        "answer.html",
        release=release,
        shown=shown,
        figure=embedded(value_figure(shown, names=study.names)),
        network=embedded(network_figure(shown) if shown["form"] == "graph" else None),
        has_truth=asked is not None and shown["form"] in ("number", "vector"),
    )


@router.get("/study/{identifier}/answers/{debit}/figure.json")
def figure(request: Request, identifier: str, debit: str) -> Response:
    """Return the drawing of a release."""
    state = state_of(request)
    study = opened(state, identifier)
    shown = state.public_worker.call("show", release=study.release(debit))
    return tell(value_figure(shown, names=study.names))


@router.get("/study/{identifier}/answers/{debit}/truth.json")
def truth(request: Request, identifier: str, debit: str) -> Response:
    """Return the truth beside a release, for the custodian's side of the page."""
    state = state_of(request)
    study = opened(state, identifier)
    asked = _asked(state, study, debit)
    if asked is None:
        raise InputError(
            "This question was asked before the studio was started; ask it again (it is free)."
        )
    shown = state.public_worker.call("show", release=study.release(debit))
    value = study.worker.call("truth", asked=asked)
    drawn = {"y": value} if isinstance(value, list) else value
    off = abs(shown["value"] - value) if shown["form"] == "number" else None
    return tell({"truth": value, "off": off, "figure": value_figure(shown, truth=drawn)})


@router.post("/study/{identifier}/answers/{debit}/compare")
def compare(request: Request, identifier: str, debit: str) -> Response:
    """Start measuring a synthetic graph against the original."""
    state = state_of(request)
    study = opened(state, identifier)
    job = Job("compare", {"release": dict(study.release(debit))}, "comparison", study=identifier)
    state.track(study.worker.submit(job))
    return tell({"job": job.identifier})


@router.post("/study/{identifier}/answers/{debit}/attack.json")
def attack(
    request: Request,
    identifier: str,
    debit: str,
    prior: Annotated[str, Form()] = "0.5",
    one: Annotated[str, Form()] = "",
    other: Annotated[str, Form()] = "",
) -> Response:
    """Attack a release, and set what the attacker gains beside what the guarantee allows."""
    study = opened(state_of(request), identifier)
    pair = [one, other] if one.strip() and other.strip() else []
    found = study.worker.call(
        "attack", release=dict(study.release(debit)), pair=pair, prior=prior.strip()
    )
    return tell({**found, "figure": belief_figure(found)})


@router.get("/study/{identifier}/compared/{job}.json")
def compared(request: Request, identifier: str, job: str) -> Response:
    """Return a finished comparison: a table and a figure, for the inside."""
    found = state_of(request).job(job)
    if found.state != "done" or found.study != identifier or found.verb != "compare":
        raise InputError("That comparison is not there.")
    return tell({**found.result, "figure": compare_figure(found.result)})


@router.get("/study/{identifier}/answers/{debit}/download/{form}")
def download(request: Request, identifier: str, debit: str, form: str) -> Response:
    """Hand a release out as a file."""
    state = state_of(request)
    release = opened(state, identifier).release(debit)
    if form == "json":
        text = json.dumps(release, indent=2, ensure_ascii=False) + "\n"
        return _file("application/json", text.encode(), release, "json")
    if form == "html":
        from tulle.core.release import Release

        return _file("text/html", Release.from_json(release).report().encode(), release, "html")
    media, content = state.public_worker.call("file", release=release, form=form)
    return _file(media, content, release, "csv")


def _file(media: str, content: bytes, release: Any, ending: str) -> Response:
    name = re.sub(r"[^a-z0-9]+", "-", release["query"].lower()).strip("-")[:60] or "release"
    return Response(
        content,
        media_type=media,
        headers={"Content-Disposition": f'attachment; filename="{name}.{ending}"'},
    )


def _asked(state: Any, study: Study, debit: str) -> Any:
    """Find the question behind a debit among the work of this sitting."""
    for job in state.jobs.values():
        if job.study == study.identifier and job.verb == "ask" and job.result == debit:
            return job.arguments["asked"]
    return None
