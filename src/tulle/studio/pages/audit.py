"""The audit of one mechanism: its promise, checked by machine while you watch."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from tulle.core.errors import InputError
from tulle.studio.jobs import Job
from tulle.studio.responses import go, page, state_of

router = APIRouter()


@router.get("/audit")
def audit(request: Request, job: str | None = None, mechanism: str = "") -> Response:
    """Show the audit's table, or offer to run it."""
    state = state_of(request)
    used = sorted({r["mechanism"] for s in state.studies.values() for r in s.releases()})
    names = sorted({part for name in used for part in name.split(" & ")})
    found = state.jobs.get(job or "")
    shown = None if found is None else found.now()
    return page(request, "audit.html", job=shown, mechanisms=names, mechanism=mechanism)


@router.post("/audit")
def run(request: Request, mechanism: Annotated[str, Form()]) -> Response:
    """Start the fast audit of a mechanism."""
    state = state_of(request)
    if not mechanism.strip():
        raise InputError("Name a mechanism to audit.")
    job = Job("audit", {"mechanism": mechanism.strip()}, f"audit of {mechanism}")
    state.track(state.public_worker.submit(job))
    return go(f"/audit?job={job.identifier}&mechanism={mechanism}")
