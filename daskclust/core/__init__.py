"""What all systems share: kernels on any device, cells, chunks, merging, the engine."""
