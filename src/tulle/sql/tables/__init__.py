"""Statements with several aggregates: what is bought, and the table that is made of it."""
