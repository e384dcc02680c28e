"""Who is at the other end: programs of other users, and of this one at other addresses."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tulle.studio.peers import HOST, Peers
from tulle.studio.security import Door

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  inode\n"
HERE, MAPPED, OTHER = "0100007F", "0000000000000000FFFF00000100007F", "0500007F"
LISTENING, ESTABLISHED, CLOSING = "0A", "01", "06"
PORT, THEIRS = 8123, 40_000
MINE = os.getuid() if hasattr(os, "getuid") else 0
STRANGER = MINE + 1


def line(at: str, port: int, to: str, far: int, state: str, user: int) -> str:
    return f"   0: {at}:{port:04X} {to}:{far:04X} {state} 0:0 00:0 00000000 {user} 0 595280 1\n"


OPEN = line(HERE, PORT, "00000000", 0, LISTENING, MINE)


def peers(folder: Path, *lines: str, six: str = "") -> Peers:
    (folder / "tcp").write_text(HEAD + "".join(lines))
    (folder / "tcp6").write_text(HEAD + six)
    return Peers(PORT, folder)


@pytest.mark.parametrize(
    ("known", "welcome"),
    [
        (line(HERE, THEIRS, HERE, PORT, ESTABLISHED, MINE), True),
        (line(HERE, THEIRS, HERE, PORT, ESTABLISHED, STRANGER), False),
        (line(HERE, THEIRS, HERE, PORT, ESTABLISHED, 0), True),
        # Of one that is going the table says 0, whoever began it.
        (line(HERE, THEIRS, HERE, PORT, CLOSING, 0), False),
        # The same port, by another address or to another one: it is another program's.
        (line(OTHER, THEIRS, HERE, PORT, ESTABLISHED, MINE), False),
        (line(HERE, THEIRS, OTHER, PORT, ESTABLISHED, MINE), False),
        (line(HERE, PORT, HERE, THEIRS, ESTABLISHED, MINE), False),
        ("", False),
        ("something else\n", False),
    ],
)
def test_only_programs_of_this_user_are_welcome(tmp_path: Path, known: str, welcome: bool) -> None:
    assert peers(tmp_path, OPEN, known).welcome((HOST, THEIRS)) is welcome


def test_a_client_at_another_address_does_not_pass_for_a_browser(tmp_path: Path) -> None:
    browser = line(HERE, THEIRS, HERE, PORT, ESTABLISHED, MINE)
    found = peers(tmp_path, OPEN, browser, line(OTHER, THEIRS, HERE, PORT, ESTABLISHED, STRANGER))
    assert found.welcome((HOST, THEIRS))
    assert not found.welcome(("127.0.0.5", THEIRS))
    assert not found.welcome(None)


def test_clients_of_the_newer_protocol_are_found(tmp_path: Path) -> None:
    for user in (MINE, STRANGER):
        six = line(MAPPED, THEIRS, MAPPED, PORT, ESTABLISHED, user)
        assert peers(tmp_path, OPEN, six=six).welcome((HOST, THEIRS)) is (user == MINE)


def test_where_the_system_does_not_tell_link_and_cookie_decide(tmp_path: Path) -> None:
    assert Peers(PORT, tmp_path / "none").welcome((HOST, THEIRS))
    assert peers(tmp_path).welcome((HOST, THEIRS))


def test_the_door_asks_who_it_is_before_it_looks_at_a_token(tmp_path: Path) -> None:
    door = Door(None, port=PORT, peers=peers(tmp_path, OPEN))  # type: ignore[arg-type]
    link = door.link()
    client = TestClient(door, base_url=f"http://{HOST}:{PORT}", client=(HOST, THEIRS))
    answer = client.get(link, follow_redirects=False)
    assert answer.status_code == 403
    assert "another user" in answer.text
    door._peers = peers(tmp_path, OPEN, line(HERE, THEIRS, HERE, PORT, ESTABLISHED, MINE))
    # The token was not used up.
    assert client.get(link, follow_redirects=False).status_code == 303


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server((HOST, 0)) as listening:
        yield listening


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="this system has no such table")
def test_a_real_connection_is_this_users(server: socket.socket) -> None:
    found = Peers(server.getsockname()[1])
    assert found._tells
    with socket.create_connection(server.getsockname()) as client:
        assert found.welcome(client.getsockname())
    with socket.create_connection(server.getsockname()) as client:
        other = client.getsockname()
    assert not found.welcome(other)


@pytest.mark.skipif(MINE != 0 or sys.platform != "linux", reason="only root can be somebody else")
def test_a_real_connection_of_another_user_is_refused(server: socket.socket) -> None:
    found = Peers(server.getsockname()[1])
    program = (
        "import os, socket, sys; os.setuid(65534); "
        f"s = socket.socket(); s.connect({server.getsockname()!r}); "
        "print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as stranger:
        assert stranger.stdout is not None
        port = int(stranger.stdout.readline())
        assert not found.welcome((HOST, port))
        stranger.communicate("")
