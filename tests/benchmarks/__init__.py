"""Benchmarks: ``pytest tests/benchmarks/bench_*.py`` (they are not collected otherwise)."""
