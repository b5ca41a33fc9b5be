"""Hits for ``daskclust events``: its options, the order of time, noisy pixels."""
