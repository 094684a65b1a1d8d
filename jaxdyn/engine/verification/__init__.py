"""Verification on top of all: what is asked for, run and judged, maps of where a claim holds, and results as JSON."""
