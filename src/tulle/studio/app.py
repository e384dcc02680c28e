"""The web application: pages over the state of one studio, behind its access check."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from tulle.core.errors import TulleError
from tulle.studio.responses import go, page, page_before, state_of
from tulle.studio.state import StudioState

HERE = Path(__file__).parent


def build(state: StudioState) -> FastAPI:
    """Return the application over the state of a studio.

    A :class:`~tulle.studio.security.Door` belongs before it.
    """
    from tulle.studio.pages import answers, ask, audit, home, jobs, ledger, opening, sql

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        state.close()

    # No description of the interface is served: there are pages, and nothing else to call.
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.studio = state
    app.mount("/static", _Cached(directory=HERE / "static"), name="static")
    app.add_api_route("/plotly.js", _plotly, include_in_schema=False)
    for room in (home, opening, ask, sql, answers, ledger, audit, jobs):
        app.include_router(room.router)
    app.add_exception_handler(TulleError, _explain)
    app.add_exception_handler(404, _nothing_here)
    app.add_exception_handler(Exception, _hold_back)
    return app


async def _explain(request: Request, error: Exception) -> Response:
    if request.url.path.endswith(".json"):
        return JSONResponse({"error": str(error)}, status_code=422)
    back = page_before(request)
    if request.method == "POST" and back is not None:
        state_of(request).notice = ("error", str(error))
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
