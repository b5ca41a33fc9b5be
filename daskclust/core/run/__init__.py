"""Run a plan: its contract, the engine, graphs of Dask, exchange of points, sizes of chunks."""
