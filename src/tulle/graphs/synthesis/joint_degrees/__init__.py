"""Joint degrees: the question, its soft classes, and mechanisms for it."""
