"""Event building: pixel hits to clusters (Celko et al. 2025)."""
