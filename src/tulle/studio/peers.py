"""Whose program is at the other end of a connection, where the system tells: on Linux.

Another user of the machine may find out a link or a cookie: from the list of running programs,
which shows what a browser was started with, or as a server on another port, to which browsers send
the same cookies. Neither opens anything for them then. Elsewhere all rests on link and cookie.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"

_TABLES = ("tcp", "tcp6")
_HOSTS = ("0100007F", "0000000000000000FFFF00000100007F")
"""The host as the two tables write it, on machines with the small end first."""

_LISTENING, _ESTABLISHED = "0A", "01"
_ROOT = 0
"""May read everything anyway, and hands connections on to some virtual machines."""

_LOOKS = 3
"""A table that changes while it is read may leave out a line."""


class Peers:
    """The users at the other ends of connections to a port of this machine, once it is open.

    Example:
        >>> import socket
        >>> with socket.create_server((HOST, 0)) as server:
        ...     port = server.getsockname()[1]
        ...     with socket.create_connection((HOST, port)) as client:
        ...         Peers(port).welcome(client.getsockname())
        True
    """

    def __init__(self, port: int, folder: Path = Path("/proc/net")) -> None:
        self._port, self._folder = port, folder
        self._own = {_ROOT, os.getuid()} if hasattr(os, "getuid") else set()
        self._tells = (port, _LISTENING) in {(mine, state) for mine, _, state, _ in self._lines()}

    def welcome(self, client: tuple[str, int] | None) -> bool:
        """Say whether a client is a program of this user, or nobody can tell."""
        if not self._tells:
            return True
        if client is None or client[0] != HOST:  # another address may have the same port
            return False
        sought = client[1], self._port, _ESTABLISHED
        for _ in range(_LOOKS):
            for *found, user in self._lines():
                if tuple(found) == sought:
                    return user in self._own
        return False

    def _lines(self) -> Iterator[tuple[int, int, str, int]]:
        """Yield two ports, state and user of every end of a connection from this host to itself.

        An end that listens is at port 0 of nowhere with its other side.
        """
        for name in _TABLES:
            with suppress(OSError, ValueError, IndexError):
                for line in (self._folder / name).read_text().splitlines()[1:]:
                    _, mine, other, state, _, _, _, user, *_ = line.split()
                    (at, port), (to, far) = mine.split(":"), other.split(":")
                    if at in _HOSTS and (to in _HOSTS or state == _LISTENING):
                        yield int(port, 16), int(far, 16), state, int(user)
