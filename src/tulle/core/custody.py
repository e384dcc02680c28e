"""Files that show the truth: they belong to whoever wrote them, and to nobody else."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
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


def private_folder(owner: object) -> str:
    """Make a folder that nobody else can enter, and that is gone when the owner is.

    Example:
        >>> class Engine: ...
        >>> engine = Engine()
        >>> folder = private_folder(engine)
        >>> oct(os.stat(folder).st_mode & 0o077), os.path.exists(folder)
        ('0o0', True)
        >>> del engine
        >>> os.path.exists(folder)
        False
    """
    folder = tempfile.mkdtemp(prefix="tulle-")
    weakref.finalize(owner, _remove, folder, os.getpid())
    return folder


def _remove(folder: str, process: int) -> None:
    # A fork has a copy of the owner, and the folder is still in use.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
