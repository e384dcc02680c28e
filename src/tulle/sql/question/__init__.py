"""Questions in SQL: which are supported, what they aggregate."""
