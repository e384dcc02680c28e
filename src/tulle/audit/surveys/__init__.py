"""The audit of survey designs, and faults that it must find."""
