"""The audit of streams: running totals that are paid for once and released step by step."""
