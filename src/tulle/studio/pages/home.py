"""The first page: the data at hand, the studies that are open, the accounts in the ledger."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, UploadFile
from fastapi.responses import Response

from tulle.studio.responses import go, page, state_of
from tulle.studio.study import place_name

router = APIRouter()


@router.get("/")
def home(request: Request) -> Response:
    """Show the data and studies; of one source with nothing open yet, its opening form."""
    state = state_of(request)
    if len(state.sources) == 1 and not any(study.account for study in state.studies.values()):
        return go(f"/study/{state.begin(state.sources[0]).identifier}")
    return page(request, "home.html", place_name=place_name, accounts=state.ledger.accounts())


@router.post("/begin")
def begin(request: Request, place: Annotated[str, Form()]) -> Response:
    """Put data in the studio."""
    return go(f"/study/{state_of(request).begin(place.strip()).identifier}")


@router.post("/upload")
def upload(request: Request, file: UploadFile) -> Response:
    """Take a file from the browser and put it in the studio."""
    state = state_of(request)
    return go(f"/study/{state.begin(state.upload(file.filename or '', file.file)).identifier}")


@router.get("/data")
def data_page(request: Request) -> Response:
    """Show the data and studies, also when there is only one source."""
    state = state_of(request)
    return page(request, "home.html", place_name=place_name, accounts=state.ledger.accounts())
