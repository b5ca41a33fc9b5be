"""Merge what chunks found: sets over chunks, the tree of merges, numbers of clusters."""
