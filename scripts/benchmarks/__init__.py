"""The benchmarks of `scripts/benchmark.py`, each a function that yields lines as they are measured."""
