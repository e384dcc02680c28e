"""What is timed, or compared with peers in one run: ``python -m benchmarks [--minute] [NAME]``."""
