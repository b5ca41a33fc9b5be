"""CLUE's kernels."""
