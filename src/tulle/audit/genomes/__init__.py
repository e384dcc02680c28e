"""The audit of mechanisms on genotypes, and faults that it must find."""
