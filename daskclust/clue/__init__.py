"""CLUE, density clustering of calorimeter hits (Rovere et al. 2020)."""
