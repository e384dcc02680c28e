"""K-relations, the truncation LP, recursive and race-to-the-top mechanisms."""
