"""Beside the sliders: suggested parameters, comparisons, files to take along, parts of large data."""
