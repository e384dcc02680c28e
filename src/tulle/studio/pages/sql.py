"""SQL: the schema with its owners, a statement, its plan, its answer."""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tulle.core.errors import TulleError
from tulle.studio.app import desk_of, tell
from tulle.studio.pages.ask import opened, study_page
from tulle.studio.study import parse_groups

router = APIRouter()


@router.get("/study/{identifier}/sql")
def sql(request: Request, identifier: str) -> Response:
    """Show the schema and take a statement."""
    study = opened(desk_of(request), identifier)
    return study_page(request, study, "sql.html", schema=study.facts)


@router.get("/study/{identifier}/check.json")
def check(request: Request, identifier: str, text: str, groups: str = "") -> Response:
    """Say whether a statement can be asked, and if not, where the trouble is."""
    desk = desk_of(request)
    study = opened(desk, identifier)
    try:
        asked = {"kind": "database", "text": text, "arguments": {"groups": parse_groups(groups)}}
        desk.clerk.call(
            "plan",
            asked=asked,
            kind=study.kind,
            facts=dict(study.facts),
            unit=study.unit,
            epsilon="1",
            delta="0",
        )
    except TulleError as error:
        return tell({"problem": str(error), "place": find_clause(text, str(error))})
    return tell({"problem": None, "asked": asked})


def find_clause(text: str, problem: str) -> Any:
    """Return where in the statement the clause lies that a message names, as [start, end]."""
    place = re.search(r"line (\d+),? col(?:umn)? (\d+)", problem, re.IGNORECASE)
    if place:
        lines = text.split("\n")
        line, column = int(place[1]) - 1, int(place[2])
        if line < len(lines):
            start = sum(len(before) + 1 for before in lines[:line]) + max(0, column - 1)
            return [start, min(len(text), start + 1)]
    candidates = [*re.findall(r"[`'\"]([^`'\"]{2,})[`'\"]", problem)]
    candidates += re.findall(r"\b[A-Z][A-Z]+(?: [A-Z]+)*\b", problem)
    candidates += re.findall(r"[A-Za-z_][\w.]*", problem)
    for words in candidates:
        pattern = r"\s+".join(re.escape(word) for word in words.split())
        found = re.search(pattern, text, re.IGNORECASE)
        if found and len(words) > 2 and words.upper() not in {"THE", "AND", "FOR", "NOT"}:
            return [found.start(), found.end()]
    return None
