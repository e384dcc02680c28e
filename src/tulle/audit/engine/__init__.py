"""Checks that know no kind of data: exact laws, exhaustive bounds, black-box tests, the table."""
