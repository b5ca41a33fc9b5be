"""DBSCAN and friends-of-friends."""
