"""The ledger: every debit, what is left, whether the ledger is intact."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from tulle.core.guarantee import display
from tulle.core.validate import counted, rational
from tulle.studio.pages.ask import opened
from tulle.studio.responses import go, page, state_of
from tulle.studio.state import StudioState

if TYPE_CHECKING:
    from tulle.streams.stream import KeptStream

router = APIRouter()

_DRAWN = 12
"""So many groups of a stream are drawn on the page; the report has all."""


@router.get("/ledger")
def ledger(request: Request) -> Response:
    """Show all accounts with their debits."""
    state = state_of(request)
    accounts = []
    for account in state.ledger.accounts():
        # A stream's answers are its steps; others are kept whole.
        places = {"release": "debit", "step": "stream"}
        kept = {e.body[places[e.kind]] for e in state.ledger.entries() if e.kind in places}
        debits = [
            {
                "digest": entry.digest,
                "question": entry.body["question"],
                "epsilon": display(rational(entry.body["guarantee"]["epsilon"])),
                "delta": display(rational(entry.body["guarantee"]["delta"])),
                "answered": entry.digest in kept,
            }
            for entry in state.ledger.debits(account.name)
        ]
        left = state.ledger.remaining(account.name)
        dated = account.version is not None
        periods = state.ledger.calendar(account.name) if dated else []
        accounts.append(
            {
                "account": account,
                "debits": debits,
                "left": left,
                "periods": periods,
                "streams": [_stream(state, kept) for kept in streams(state, account.name)],
            }
        )
    return page(request, "ledger.html", accounts=accounts, head=state.ledger.head())


def streams(state: StudioState, account: str) -> list[KeptStream]:
    """Return the streams of an account."""
    from tulle.streams.stream import kept_streams

    return kept_streams(state.ledger, account)


def _stream(state: StudioState, kept: KeptStream) -> dict[str, Any]:
    """Return what the page shows of a stream: from the ledger alone."""
    from tulle.reports.report import series_charts

    releases = kept.releases(state.ledger)
    open_now = [s for s in state.studies.values() if s.account == kept.account]
    drawn = series_charts(releases)[:_DRAWN] if releases else []
    return {
        "title": kept.title,
        "debit": kept.debit,
        "guarantee": str(kept.terms.guarantee),
        "charts": [Markup(chart) for _, chart in drawn],
        "released": len(releases),
        "steps": kept.declaration.steps,
        "until": kept.declaration.label(len(releases) - 1) if releases else None,
        "study": open_now[0].identifier if open_now else None,
    }


@router.post("/study/{identifier}/streams/{debit}/step")
def step(request: Request, identifier: str, debit: str) -> Response:
    """Release the next step of a stream. It is paid for; a step is released once."""
    state = state_of(request)
    study = opened(state, identifier)
    count = study.worker.call("step", stream=debit)
    state.notice = ("good", f"Step {count} was released.")
    return go("/ledger")


@router.post("/ledger/verify")
def verify(request: Request) -> Response:
    """Check the chain."""
    state = state_of(request)
    problems = state.ledger.verify()
    if problems:
        state.notice = ("error", "The ledger is damaged: " + "; ".join(map(str, problems)))
    else:
        count = state.ledger.head().count
        state.notice = (
            "good",
            f"The ledger is intact: {counted(count, 'entry', 'entries')}, each with the digest of "
            "the one before.",
        )
    return go("/ledger")


@router.get("/ledger/export")
def export(request: Request) -> Response:
    """Hand out the accounts, debits and releases: everything in it may be public."""
    state = state_of(request)
    entries: list[dict[str, Any]] = [
        {
            "number": entry.number,
            "kind": entry.kind,
            "account": entry.account,
            "body": dict(entry.body),
            "digest": entry.digest,
        }
        for entry in state.ledger.entries()
    ]
    content = {"exported": datetime.now(UTC).isoformat(timespec="seconds"), "entries": entries}
    return Response(
        json.dumps(content, indent=2, ensure_ascii=False) + "\n",
        media_type="application/json",
        headers={"Content-Disposition": 'attachment; filename="ledger.json"'},
    )
