"""Emergence of superposition: how training makes a continuous thought search a graph."""

from jaxdyn.theories.emer.claims import CLAIMS

__all__ = ["CLAIMS"]
