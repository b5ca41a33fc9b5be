"""Benchmarks of the systems on this machine: ``python tests/bench SYSTEM``."""
