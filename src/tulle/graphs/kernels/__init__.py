"""Compiled exact counts on a graph. Custodian side: every number here is private."""
