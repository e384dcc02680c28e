"""Real engines for the tests: a PostgreSQL server and a local Spark, each started once."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL server that is started for the tests and stopped after them."""
    pytest.importorskip("adbc_driver_postgresql", reason="PostgreSQL: no ADBC driver installed")
    pgserver = pytest.importorskip("pgserver", reason="PostgreSQL: the pgserver wheel is missing")
    folder: Path = tmp_path_factory.mktemp("pg")
    # The server runs as another user when the tests run as root: it has to reach the folder.
    for parent in (folder, *folder.parents):
        if parent.owner() == folder.owner() and parent.name.startswith(("pytest-", "pg", "popen")):
            parent.chmod(0o755)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            server = _start(pgserver, folder / "data")
        except (OSError, RuntimeError, ValueError, AssertionError) as error:
            pytest.skip(f"PostgreSQL cannot be started here: {error}")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


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
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
