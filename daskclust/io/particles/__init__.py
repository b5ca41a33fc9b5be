"""Particles of simulations: snapshots in HDF5, zarr stores, arrays, Parquet."""
