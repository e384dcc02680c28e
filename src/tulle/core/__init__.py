"""The nouns of tulle; no kind of data is known here."""
