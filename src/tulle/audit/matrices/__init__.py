"""The audit of mechanisms on yes/no matrices, and faults that it must find."""
