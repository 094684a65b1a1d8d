"""Programs: a trial is traced once, identified by its fingerprint, and compiled for blocks of many runs."""
