"""The nouns of tulle; this room knows no kind of data."""
