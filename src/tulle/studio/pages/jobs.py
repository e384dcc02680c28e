"""Work that goes on: pages ask how far it is, and can stop it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tulle.studio.responses import go, page_before, state_of, tell

router = APIRouter()


@router.get("/jobs/{identifier}.json")
def follow(request: Request, identifier: str) -> Response:
    """Return how far a piece of work is."""
    return tell(state_of(request).job(identifier).to_json())


@router.post("/jobs/{identifier}/cancel")
def cancel(request: Request, identifier: str) -> Response:
    """Stop a piece of work."""
    state = state_of(request)
    state.cancel(state.job(identifier))
    return go(page_before(request) or "/data")
