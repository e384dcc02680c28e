"""The first page: the data at hand, the studies that are open, the accounts in the ledger."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, UploadFile
from fastapi.responses import Response

from tulle.studio.responses import desk_of, go, page
from tulle.studio.study import place_name

router = APIRouter()


@router.get("/")
def home(request: Request) -> Response:
    """Show the desk. With one source and nothing open yet, its opening form comes at once."""
    desk = desk_of(request)
    if len(desk.sources) == 1 and not any(study.account for study in desk.studies.values()):
        return go(f"/study/{desk.begin(desk.sources[0]).identifier}")
    return page(request, "home.html", place_name=place_name, accounts=desk.ledger.accounts())


@router.post("/begin")
def begin(request: Request, place: Annotated[str, Form()]) -> Response:
    """Put data on the desk."""
    return go(f"/study/{desk_of(request).begin(place.strip()).identifier}")


@router.post("/upload")
def upload(request: Request, file: UploadFile) -> Response:
    """Take a file from the browser and put it on the desk."""
    desk = desk_of(request)
    return go(f"/study/{desk.begin(desk.upload(file.filename or '', file.file)).identifier}")


@router.get("/desk")
def desk_page(request: Request) -> Response:
    """Show the desk, also when there is only one source."""
    desk = desk_of(request)
    return page(request, "home.html", place_name=place_name, accounts=desk.ledger.accounts())
