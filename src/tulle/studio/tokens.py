"""Names that nobody can guess: for the door, for studies and for work. They are not noise."""

from __future__ import annotations

import secrets


def new_key() -> str:
    """Return a key that opens the door."""
    return secrets.token_urlsafe(32)


def new_name() -> str:
    """Return a short name for a study or a job."""
    return secrets.token_urlsafe(9)
