"""The report: one self-contained page of all claims, and the catalogue."""
