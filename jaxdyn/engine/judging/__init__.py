"""Decisions on claims: checks and readings, opponents, resolution, and the verdict."""
