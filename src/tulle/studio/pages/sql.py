"""SQL: the schema with its owners, a statement, its plan, its answer."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tulle.core.errors import TulleError
from tulle.sql.question.error_position import find_place
from tulle.studio.pages.ask import opened, study_page
from tulle.studio.responses import state_of, tell
from tulle.studio.study import parse_count, parse_groups

router = APIRouter()


@router.get("/study/{identifier}/sql")
def sql(request: Request, identifier: str) -> Response:
    """Show the schema and take a statement."""
    study = opened(state_of(request), identifier, "database")
    return study_page(request, study, "sql.html", schema=study.facts)


@router.get("/study/{identifier}/check.json")
def check(
    request: Request,
    identifier: str,
    text: str,
    groups: str = "",
    keys_per_person: str = "",
    minimum: str = "",
    other: str = "",
    top: str = "",
    ranges: str = "",
) -> Response:
    """Say whether a statement can be asked, and if not, where the trouble is."""
    state = state_of(request)
    study = opened(state, identifier)
    # Groups that nobody listed are found with a delta; whether there is one is the account's word.
    allowed = study.ledger.account(study.account or "").terms.delta or 0
    try:
        asked = {
            "kind": "database",
            "text": text,
            "arguments": {
                "groups": parse_groups(groups),
                "keys_per_person": "private"
                if keys_per_person.strip() == "private"
                else parse_count(keys_per_person, "groups for one person"),
                "minimum": parse_count(minimum, "people"),
                "other": other.strip() or None,
                "top": parse_count(top, "groups to show"),
                "ranges": ranges.strip() or None,
            },
        }
        state.public_worker.call(
            "plan",
            asked=asked,
            kind=study.kind,
            facts=dict(study.facts),
            unit=study.unit,
            epsilon="1",
            delta=str(allowed),
        )
    except TulleError as error:
        return tell({"problem": str(error), "place": _offsets(text, str(error))})
    return tell({"problem": None, "asked": asked})


def _offsets(text: str, problem: str) -> list[int] | None:
    """Return where in the statement the words lie that a message is about, as [start, end]."""
    found = find_place(text, problem)
    if found is None:
        return None
    line, start, end = found
    before = sum(len(row) for row in text.splitlines(keepends=True)[:line])
    return [before + start, before + end]
