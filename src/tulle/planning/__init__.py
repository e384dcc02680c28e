"""Before anything is spent: which mechanisms could answer, at what price, how wrong."""
