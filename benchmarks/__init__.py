"""Measurements of the library that are no part of it: `python -m benchmarks --help`, from a checkout."""
