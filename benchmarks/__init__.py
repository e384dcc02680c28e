"""What is timed, or compared with peers in the same run: ``python -m benchmarks [NAME ...]``."""
