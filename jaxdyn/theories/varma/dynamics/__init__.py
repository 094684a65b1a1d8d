"""Efficiency of a network, and where two efficiencies cross."""
