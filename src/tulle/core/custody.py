"""Files that show the truth: they belong to whoever wrote them, and to nobody else."""

from __future__ import annotations

import os
from pathlib import Path


def custodian_file(path: str | os.PathLike[str]) -> Path:
    """Empty a file, or make it, so that only its owner may read it; return its path.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = custodian_file(f"{folder}/inside.html")
        ...     oct(page.stat().st_mode & 0o077)
        '0o0'
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)  # it may have been there before
    finally:
        os.close(descriptor)
    return Path(path)
