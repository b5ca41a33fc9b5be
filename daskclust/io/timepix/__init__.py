"""Files and readouts of Timepix detectors."""
