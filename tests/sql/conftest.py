"""Real engines for the tests: a PostgreSQL server and a local Spark, each started once."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks Spark runs in one worker, so that one Java machine is started."""
    for item in items:
        if "spark_session" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A PostgreSQL server that is started for the tests and stopped after them."""
    pytest.importorskip("adbc_driver_postgresql", reason="PostgreSQL: no ADBC driver installed")
    pgserver = pytest.importorskip("pgserver", reason="PostgreSQL: the pgserver wheel is missing")
    # Not among pytest's own folders: another session of pytest may clear those away.
    folder = Path(tempfile.mkdtemp(prefix="tulle-postgresql-"))
    # The server runs as another user when the tests run as root: it has to reach the folder.
    folder.chmod(0o755)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            server = _start(pgserver, folder / "data")
        except (OSError, RuntimeError, ValueError, AssertionError) as error:
            pytest.skip(f"PostgreSQL cannot be started here: {error}")
    # Nothing here need outlive the machine, and each test makes a database.
    server.psql("ALTER SYSTEM SET fsync = off; ALTER SYSTEM SET full_page_writes = off;")
    server.psql("ALTER SYSTEM SET synchronous_commit = off; SELECT pg_reload_conf();")
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: Any) -> Iterator[str]:
    """The URL of an empty database of the test's own: no test finds what another one left."""
    import adbc_driver_postgresql.dbapi as driver

    name = f"test_{uuid.uuid4().hex}"
    with driver.connect(postgres_server.get_uri(), autocommit=True) as connection:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        try:
            yield postgres_server.get_uri(name)
        finally:
            with connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _start(pgserver: Any, folder: Path) -> Any:
    """Start the server; on a busy machine it may take longer than its wheel waits for it."""
    for _ in range(11):
        try:
            return pgserver.get_server(folder)
        except subprocess.TimeoutExpired:
            # It goes on starting, and is found running the next time.
            continue
    return pgserver.get_server(folder)


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """A local Spark session; one Java machine for the whole run."""
    if shutil.which("java") is None:
        pytest.skip("Spark: there is no Java on this machine")
    pytest.importorskip("pyspark", reason="Spark: pyspark is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2]")
            .appName("tulle tests")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.driver.memory", "1g")
            # Compiling a plan takes longer than running it on a handful of rows.
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            # Nor does Java compile for speed what runs once, or collect garbage in parallel.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
