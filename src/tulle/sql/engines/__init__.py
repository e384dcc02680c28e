"""Connections to the programs that do the joining: DuckDB, PostgreSQL, Spark."""
