"""What pages answer with: a rendered page, JSON, or another page to go to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.templating import Jinja2Templates

from tulle.core.codec import finite
from tulle.core.errors import TulleError, raise_alone
from tulle.studio import words
from tulle.studio.state import StudioState

templates = Jinja2Templates(Path(__file__).parent / "templates")
templates.env.filters["figure"] = words.figure
templates.env.filters["odds"] = lambda epsilon: words.odds(float(epsilon))
templates.env.globals["protected"] = words.PROTECTED


_FIELDS = {"text": str, "model": str, "question": str, "partition": str, "arguments": dict}
"""What a question may have besides its kind of data."""


def state_of(request: Request) -> StudioState:
    """Return the studio that a request is about."""
    state: StudioState = request.app.state.studio
    return state


def page(request: Request, name: str, status: int = 200, **context: Any) -> Response:
    """Render a page; a notice that waits for one is shown on it."""
    state = state_of(request)
    context = {"state": state, "notice": state.take_notice(), "study": None, **context}
    return templates.TemplateResponse(request, name, context, status_code=status)


def tell(found: Any) -> JSONResponse:
    """Answer a page's own request; numbers without end are left out, as JSON has none."""
    return JSONResponse(finite(found))


def embedded(found: Any) -> str:
    """Return JSON that can stand inside a page: no text in it ends the element it stands in."""
    return json.dumps(finite(found)).replace("<", "\\u003c")


def go(place: str) -> RedirectResponse:
    """Send the browser to another page after a form."""
    return RedirectResponse(place, status_code=303)


def page_before(request: Request) -> str | None:
    """Return the page of the studio that a request comes from, whichever server it names."""
    try:
        found = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return None
    place = "/" + found.path.lstrip("/\\") + (f"?{found.query}" if found.query else "")
    return place if found.netloc else None


def asked_from(text: str) -> dict[str, Any]:
    """Read a question from a form's field.

    Raises:
        TulleError: when it is not one.
    """
    try:
        asked = json.loads(text)
        assert isinstance(asked, dict)
        assert isinstance(asked["kind"], str)
        for name, form in _FIELDS.items():
            assert isinstance(asked.get(name, form()), form)
        # JSON can write halves of letters, which no page and no ledger can hold.
        json.dumps(asked, ensure_ascii=False).encode()
    except (ValueError, KeyError, AssertionError, RecursionError):
        raise_alone(TulleError("Choose a question first."))
    return asked
