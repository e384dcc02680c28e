"""The studio's pages, one file for each journey."""
