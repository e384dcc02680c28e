"""GROUP BY without a public list: keys that are found by partition selection."""
