"""The parts of the explorer that are seen."""
