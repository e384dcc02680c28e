"""The audit of mechanisms on tables of people, and faults that it must find."""
