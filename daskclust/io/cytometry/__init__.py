"""Cells of cytometers: FCS, gmhclust, tables."""
