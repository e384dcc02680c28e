"""How the studio reads a network: the custodian says what the first row is and who is in it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.studio.studio_helpers import PATIENCE

from tulle.studio.app import build
from tulle.studio.data_worker import DataWorker
from tulle.studio.security import Door
from tulle.studio.state import StudioState

HOME = "http://127.0.0.1:8124"
ROWS = "p1,p2 too\n" + "".join(f"p{i},p{(i + 1) % 12}\n" for i in range(12))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    (tmp_path / "friends.csv").write_text(ROWS)
    state = StudioState([str(tmp_path / "friends.csv")], tmp_path / "study.ledger")
    door = Door(build(state), port=8124)
    found = TestClient(door, base_url=HOME, follow_redirects=False)
    found.get(door.link())
    found.study = next(iter(state.studies.values()))  # type: ignore[attr-defined]
    yield found
    state.close()


def open_study(client: TestClient, **form: str) -> str:
    identifier = client.study.identifier  # type: ignore[attr-defined]
    given = {"kind": "graph", "unit": "edge", "epsilon": "3", "account": "friends", **form}
    answer = client.post(f"/study/{identifier}/open", data=given, headers={"origin": HOME})
    if answer.status_code == 303:
        return client.get(f"/study/{identifier}").text
    return answer.text


def test_the_first_row_is_shown_and_asked_about(client: TestClient) -> None:
    identifier = client.study.identifier  # type: ignore[attr-defined]
    page = client.get(f"/study/{identifier}").text
    assert "The first row is" in page
    assert "p1 · p2 too" in page
    assert "first row may be a header or a link" in open_study(client)
    shown = open_study(client, header="yes")
    assert "Open the study" not in shown
    assert "Assuming that who has an edge at all is public" in shown
    study = client.study  # type: ignore[attr-defined]
    assert dict(study.facts) == {"nodes": 12}
    assert "read off the edges" in study.assumptions[0]
    plan = client.get(
        f"/study/{identifier}/plan.json",
        params={"asked": '{"kind": "graph", "text": "triangles"}', "epsilon": "1"},
    )
    assert plan.status_code == 200
    assert plan.json()["guarantee"]["assumptions"] == study.assumptions


def test_names_and_numbers_declare_who_is_there(client: TestClient) -> None:
    names = "\n".join(f"p{i}" for i in range(15))
    open_study(client, header="yes", nodes=names)
    study = client.study  # type: ignore[attr-defined]
    assert (dict(study.facts), study.assumptions) == ({"nodes": 15}, [])


def test_inside_reads_alike_whatever_the_links_are(tmp_path: Path) -> None:
    file = tmp_path / "net.csv"
    said = []
    for rows in ("a,b\n", "", "a,b\nb,c\n", "a,stranger\n"):
        file.write_text(rows)
        inside = DataWorker()
        inside.read({"kind": "graph", "path": str(file), "header": False, "nodes": ["a", "b", "c"]})
        name = re.sub(r"\W", "", repr(rows))
        said.append(inside.open(str(tmp_path / f"{name}.ledger"), "x", "edge", "1", "0"))
    assert all(words == said[0] for words in said)


def test_what_was_read_is_told_inside_and_columns_can_be_chosen(
    client: TestClient, tmp_path: Path
) -> None:
    rows = "day,ego,alter\n" + "".join(f"{i},{i},{(i + 1) % 12}\n" for i in range(12))
    (tmp_path / "friends.csv").write_text(rows + "1,3,3\n1,0,1\n")
    identifier = client.study.identifier  # type: ignore[attr-defined]
    assert "two ends of a link" in client.get(f"/study/{identifier}").text
    assert "two different columns" in open_study(client, end_one="1", end_other="1", nodes="12")
    shown = open_study(client, end_one="1", end_other="2", nodes="12")
    assert (
        "Read 12 nodes and 12 links; 1 self-link and 1 repeat dropped; header: ego, alter." in shown
    )


def test_attributes_are_read_from_a_table_beside_the_network(
    client: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text(
        "name,dept\n" + "".join(f"p{i},{'ab'[i % 2]}\n" for i in range(12))
    )
    names = "\n".join(f"p{i}" for i in range(12))
    refused = open_study(client, header="yes", nodes=names, attributes="nobody.csv")
    assert "There is no such file." in refused
    assert "outside the folders" in open_study(
        client, header="yes", nodes=names, attributes="/etc/passwd"
    )
    open_study(client, header="yes", nodes=names, attributes="people.csv")
    identifier = client.study.identifier  # type: ignore[attr-defined]
    asked = '{"kind": "graph", "text": "subgraphs(\'a-b\', where=\'a.dept != b.dept\')"}'
    study = client.study  # type: ignore[attr-defined]
    answer = client.post(
        f"/study/{identifier}/ask",
        data={"asked": asked, "epsilon": "1"},
        headers={"origin": HOME},
    )
    assert answer.status_code == 303
    for _ in range(10 * PATIENCE):
        if study.releases():
            break
        time.sleep(0.1)
    assert study.releases()[0]["query"].startswith("subgraphs(")


def test_a_public_column_is_kept_by_a_synthetic_network(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(
        "name,dept\n" + "".join(f"p{i},{'ab'[i % 2]}\n" for i in range(12))
    )
    names = "\n".join(f"p{i}" for i in range(12))
    open_study(client, header="yes", nodes=names, attributes="people.csv")
    study = client.study  # type: ignore[attr-defined]
    place = f"/study/{study.identifier}"
    shown = client.get(f"{place}/synthetic").text
    assert "Communities by dept" in shown
    assert "declare public" in shown
    asked = {"asked": '{"kind": "graph", "model": "communities", "partition": "dept"}'}
    assert client.get(f"{place}/plan.json", params={**asked, "epsilon": "1"}).json()["guarantee"]
    wrong = {"asked": '{"kind": "graph", "model": "communities", "partition": "team"}'}
    refused = client.get(f"{place}/plan.json", params={**wrong, "epsilon": "1"})
    assert "There is no column &#39;team&#39;" in refused.text or "no column 'team'" in refused.text
    answer = client.post(f"{place}/ask", data={**asked, "epsilon": "1"}, headers={"origin": HOME})
    assert answer.status_code == 303
    for _ in range(10 * PATIENCE):
        if study.releases():
            break
        time.sleep(0.1)
    kept = dict(study.releases()[0]["parameters"])["partition"]
    assert kept == ",".join("01"[i % 2] for i in range(12))
