"""The web application: pages over a desk, behind a door."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates

from tulle.core.codec import finite
from tulle.core.errors import TulleError, raise_alone
from tulle.studio import words
from tulle.studio.desk import Desk

HERE = Path(__file__).parent
templates = Jinja2Templates(HERE / "templates")
templates.env.filters["figure"] = words.figure
templates.env.filters["odds"] = lambda epsilon: words.odds(float(epsilon))
templates.env.globals["protected"] = words.PROTECTED


def build(desk: Desk) -> FastAPI:
    """Return the application over a desk; put a :class:`~tulle.studio.security.Door` before it."""
    from tulle.studio.pages import answers, ask, audit, home, jobs, ledger, opening, sql

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    # No description of the interface is served: there are pages, and nothing else to call.
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.desk = desk
    app.mount("/static", _Cached(directory=HERE / "static"), name="static")
    app.add_api_route("/plotly.js", _plotly, include_in_schema=False)
    for room in (home, opening, ask, sql, answers, ledger, audit, jobs):
        app.include_router(room.router)
    app.add_exception_handler(TulleError, _explain)
    app.add_exception_handler(404, _nothing_here)
    app.add_exception_handler(Exception, _hold_back)
    return app


def desk_of(request: Request) -> Desk:
    """Return the desk that a request is about."""
    desk: Desk = request.app.state.desk
    return desk


def page(request: Request, name: str, status: int = 200, **context: Any) -> Response:
    """Render a page; a notice that waits for one is shown on it."""
    desk = desk_of(request)
    context = {"desk": desk, "notice": desk.take_notice(), "study": None, **context}
    return templates.TemplateResponse(request, name, context, status_code=status)


def tell(found: Any) -> JSONResponse:
    """Answer a page's own request; numbers without end are left out, as JSON has none."""
    return JSONResponse(finite(found))


def go(place: str) -> RedirectResponse:
    """Send the browser to another page after a form."""
    return RedirectResponse(place, status_code=303)


def asked_from(text: str) -> dict[str, Any]:
    """Read a question from a form's field.

    Raises:
        TulleError: when it is not one.
    """
    try:
        asked = json.loads(text)
        assert isinstance(asked, dict)
        assert isinstance(asked["kind"], str)
    except (ValueError, KeyError, AssertionError):
        raise_alone(TulleError("Choose a question first."))
    return asked


async def _explain(request: Request, error: Exception) -> Response:
    if request.url.path.endswith(".json"):
        return JSONResponse({"error": str(error)}, status_code=422)
    back = request.headers.get("referer")
    if request.method == "POST" and back:
        desk_of(request).notice = ("error", str(error))
        return go(back)
    return page(request, "error.html", status=422, message=str(error))


async def _nothing_here(request: Request, error: Exception) -> Response:
    return page(request, "error.html", status=404, message="There is no such page.")


async def _hold_back(request: Request, error: Exception) -> Response:
    # Its message is unknown and may quote a record.
    message = f"Something went wrong ({type(error).__name__}); its details are held back."
    if request.url.path.endswith(".json"):
        return JSONResponse({"error": message}, status_code=500)
    return page(request, "error.html", status=500, message=message)


def _plotly() -> Response:
    # It comes with the Python package, so that nothing is fetched from a network.
    import plotly

    script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    headers = {"Cache-Control": "private, max-age=3600"}
    return FileResponse(script, media_type="text/javascript", headers=headers)


class _Cached(StaticFiles):
    """Files that never change while a studio runs."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        answer = super().file_response(*args, **kwargs)
        answer.headers["Cache-Control"] = "private, max-age=3600"
        return answer
