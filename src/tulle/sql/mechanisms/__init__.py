"""Mechanisms that answer questions in SQL, one file each."""
