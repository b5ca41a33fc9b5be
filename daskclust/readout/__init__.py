"""Event building from a running readout, and through a GPU window by window."""
