"""Columns of tables in files: text, NumPy, HDF5, Parquet, ROOT."""
