"""Raw files of Timepix3 detectors: words decoded, sorted by time, window by window."""
