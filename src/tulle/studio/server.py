"""Starting a studio: a port of this machine, a link, a browser."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from tulle.studio.app import build
from tulle.studio.peers import HOST, Peers
from tulle.studio.security import Door
from tulle.studio.state import StudioState


def serve(
    sources: Sequence[str],
    ledger: str | Path,
    *,
    port: int = 0,
    ready: Callable[[str], None],
) -> None:
    """Serve pages until interrupted. ``ready`` gets the link once the port is open.

    ``port`` 0 takes any that is free. Only programs on this machine can connect.
    """
    state = StudioState(sources, ledger)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        port = listening.getsockname()[1]
        # Whoever follows the link at once waits in line, and is not turned away.
        listening.listen()
        door = Door(build(state), port=port, peers=Peers(port))
        # A traceback in the terminal may quote a record, so none is shown unless asked for.
        level = "warning" if os.environ.get("TULLE_DEBUG") == "1" else "critical"
        # This one quotes the bytes of an upload that it stumbles over.
        logging.getLogger("python_multipart").setLevel(level.upper())
        config = uvicorn.Config(door, log_level=level, access_log=False, server_header=False)
        ready(f"http://{HOST}:{port}{door.link()}")
        uvicorn.Server(config).run([listening])
    finally:
        listening.close()
        state.close()
