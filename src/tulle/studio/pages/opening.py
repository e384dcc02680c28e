"""Opening a study: what the data is, who is protected, how much may be spent in all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tulle.core.errors import InputError, LedgerError
from tulle.core.validate import whole_number
from tulle.sql.schema.declarations import read_pairs
from tulle.studio import words
from tulle.studio.data_worker import database_suffixes, database_url
from tulle.studio.responses import go, page, state_of
from tulle.studio.state import StudioState
from tulle.studio.study import Study, place_name

router = APIRouter()

_FILES = (".csv", ".tsv", ".txt", ".gz", ".parquet", ".mtx", ".graphml")


def opening_page(request: Request, study: Study) -> Response:
    """Show the form that opens a study, or offers to go on with an account that exists."""
    state = state_of(request)
    found = study.worker.call("peek", path=study.place)
    kind = request.query_params.get("kind", found["kind"])
    if kind not in words.KINDS:
        raise InputError("There is no such kind of data.")
    catalogue = None
    if kind == "database" and not study.place.endswith(".toml"):
        catalogue = study.worker.call("catalogue", url=database_url(study.place))
    endings = "|".join(map(re.escape, (*_FILES, *database_suffixes())))
    name = re.sub(endings, "", _stem(study))
    existing = next((a for a in state.ledger.accounts() if a.name == name), None)
    return page(
        request,
        "opening.html",
        study=study,
        place=place_name(study.place),
        kind=kind,
        kinds=words.KINDS,
        columns=found["columns"],
        first=found.get("first", []),
        header=found.get("header", False),
        units=words.units(kind, dated=study.place.endswith(".toml")),
        catalogue=catalogue,
        drawing=None if catalogue is None else draw_schema(catalogue),
        account=name,
        others=[s.account for s in state.studies.values() if s.account and s.place == study.place],
        existing=existing if existing is not None and existing.kind == kind else None,
    )


@router.post("/study/{identifier}/open")
async def open_study(request: Request, identifier: str) -> Response:
    """Read the data and open its account."""
    from starlette.concurrency import run_in_threadpool

    state = state_of(request)
    study = state.study(identifier)
    form = {name: str(value) for name, value in (await request.form()).items()}
    await run_in_threadpool(_open_once, state, study, form)
    return go(f"/study/{identifier}")


def _open_once(state: StudioState, study: Study, form: Mapping[str, str]) -> None:
    with study.opening:
        if study.account is not None:
            # Another tab's page would go on to ask, and be charged elsewhere under another unit.
            raise InputError(
                f"This study is open already, with the account {study.account!r}. Close it to open "
                "its data in another way."
            )
        _open(state, study, form)


def _open(state: StudioState, study: Study, form: Mapping[str, str]) -> None:
    account = form.get("account", "").strip()
    terms = _terms(state, account, form)
    spec = _spec(study, form)
    if spec["kind"] == "graph" and form.get("attributes", "").strip():
        spec["attributes"] = state.find_beside(study, form["attributes"].strip())
    study.read(spec)
    study.open(account, *terms)
    cards = [card.asked for card in words.CARDS[study.kind]]
    study.cards = state.public_worker.call(
        "supported", kind=study.kind, unit=study.unit, questions=cards
    )


def _terms(state: StudioState, account: str, form: Mapping[str, str]) -> tuple[str, str, str]:
    if not account:
        raise InputError("Give the account a name.")
    if form.get("continue"):
        booked = state.ledger.account(account).terms
        return booked.unit.name, "", "0"
    if not form.get("unit"):
        raise InputError("Say who is protected: nothing is assumed.")
    if not form.get("epsilon", "").strip():
        raise InputError("Say how much may be spent in all (epsilon): nothing is assumed.")
    try:
        state.ledger.account(account)
    except LedgerError:
        return form["unit"], form["epsilon"].strip(), form.get("delta", "").strip() or "0"
    raise InputError(
        f"The ledger has an account {account!r} already. Go on with it, or choose another name."
    )


def _spec(study: Study, form: Mapping[str, str]) -> dict[str, Any]:
    kind = form.get("kind", "")
    if kind not in words.KINDS:
        raise InputError("Say what the data is.")
    spec: dict[str, Any] = {"kind": kind, "path": study.place}
    if kind == "graph":
        listed = form.get("nodes", "").strip()
        if whole_number(listed) is not None:
            spec["nodes"] = whole_number(listed)
        elif listed:
            spec["nodes"] = [name.strip() for name in listed.splitlines() if name.strip()]
        if form.get("header"):
            spec["header"] = form["header"] == "yes"
        columns = [form.get(f"end_{end}", "") for end in ("one", "other")]
        if any(columns):
            spec["columns"] = [whole_number(column) for column in columns]
            if None in spec["columns"] or columns[0] == columns[1]:
                raise InputError("Choose two different columns as the two ends of a link.")
        spec["ignore"] = [name for name in ("weights", "direction") if form.get(f"ignore_{name}")]
    elif kind == "contributions":
        for name in ("individual", "row", "column", "weight"):
            spec[name] = form.get(name, "")
        for name in ("rows", "columns"):
            spec[name] = _places(form.get(name) or form.get("rows", ""))
    elif kind == "matrix":
        spec["header"] = bool(form.get("header"))
    elif kind == "database":
        spec |= _owners(form)
    return spec


def _places(text: str) -> list[str] | int | None:
    """Return the public places; None where nobody lists them, and they are found privately."""
    text = text.strip()
    if not text:
        return None
    number = whole_number(text)
    names = [name.strip() for name in re.split(r"[,\n]", text)]
    return [name for name in names if name] if number is None else number


def _owners(form: Mapping[str, str]) -> dict[str, Any]:
    owners: dict[str, Any] = {}
    public = []
    for name, value in form.items():
        table = name.removeprefix("table:")
        if table == name:
            continue
        if value == "public":
            public.append(table)
        elif value == "owned":
            owner = form.get(f"owner:{table}", "").strip()
            if not owner:
                raise InputError(f"Say whose the rows of {table} are, or leave it out.")
            owners[table] = owner
    ranges = dict(read_pairs(form.get("ranges", ""), "ranges as TABLE.COLUMN = LOW, HIGH"))
    keys = dict(read_pairs(form.get("keys", ""), "keys as TABLE = COLUMN"))
    return {"owners": owners, "public": public, "ranges": ranges, "keys": keys}


def _stem(study: Study) -> str:
    return place_name(study.place).rsplit("/", 1)[-1]


def draw_schema(catalogue: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the tables out as boxes in a row, and the declared keys as lines between them."""
    width, gap, row, per_line = 190, 50, 20, 4
    boxes: dict[str, dict[str, Any]] = {}
    top, tallest = 10, 0
    for number, (table, columns) in enumerate(catalogue["tables"].items()):
        place = number % per_line
        if number and not place:
            top, tallest = top + tallest + gap, 0
        height = 30 + row * len(columns)
        tallest = max(tallest, height)
        boxes[table] = {
            "table": table,
            "x": 10 + place * (width + gap),
            "y": top,
            "width": width,
            "height": height,
            "columns": [
                {"name": name, "type": kind, "key": name in catalogue["primary"].get(table, ())}
                for name, kind in columns.items()
            ],
        }
    lines = []
    for link in catalogue["links"]:
        start, end = boxes[link["table"]], boxes[link["to"]]
        names = [column["name"] for column in start["columns"]]
        at = start["y"] + 30 + row * names.index(link["columns"][0]) + row / 2
        right = end["x"] > start["x"]
        lines.append(
            {
                "x1": start["x"] + (width if right else 0),
                "y1": at,
                "x2": end["x"] + (0 if right else width),
                "y2": end["y"] + 15,
                "label": f"{', '.join(link['columns'])} → {link['to']}",
            }
        )
    columns_drawn = min(per_line, max(1, len(boxes)))
    return {
        "boxes": list(boxes.values()),
        "lines": lines,
        "width": 20 + columns_drawn * (width + gap) - gap,
        "height": top + tallest + 10,
    }
