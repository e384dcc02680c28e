"""Pages about releases: tables, charts, and reports that stand alone."""
