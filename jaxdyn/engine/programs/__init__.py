"""What is compiled and run: one traced run of a trial, its fingerprint, and blocks of many runs."""
