"""The claims of calibration, by topic."""
